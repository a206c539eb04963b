//! End-to-end tests on the testbed, and the demo.
