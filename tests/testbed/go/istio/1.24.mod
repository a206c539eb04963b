module testbed/istio

go 1.26.0

require istio.io/istio v0.0.0-20241105211601-8825a6b7f8c9
