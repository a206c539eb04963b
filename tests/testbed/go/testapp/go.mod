module testbed/testapp

go 1.26.0
