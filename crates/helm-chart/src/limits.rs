//! What a render may cost. Charts are untrusted: every loop, copy and byte is paid for.

use std::cell::Cell;

/// Bounds of one render. Passing one ends the render with [`RenderError::Limit`](crate::RenderError::Limit).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderLimits {
    /// Bytes of a single string and of the whole output.
    pub output_bytes: usize,
    /// How deep `include`, `template` and `tpl` may nest. Helm stops at 1000.
    pub depth: usize,
    /// Iterations of all `range` together, and the length of a list a function makes.
    pub iterations: u64,
    /// Units of work: nodes evaluated, values copied or written.
    pub steps: u64,
}

impl Default for RenderLimits {
    /// Some twenty times what the largest Istio chart needs.
    fn default() -> Self {
        Self {
            output_bytes: 64 << 20,
            depth: 100,
            iterations: 1_000_000,
            steps: 20_000_000,
        }
    }
}

/// The deepest value a template may walk, so that no walk overflows the stack.
pub(crate) const MAX_VALUE_DEPTH: usize = 200;

/// A limit that was passed, without the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exceeded {
    pub(crate) what: &'static str,
    pub(crate) limit: u64,
}

/// What is left of the limits.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: RenderLimits,
    steps: Cell<u64>,
    iterations: Cell<u64>,
    output: Cell<usize>,
}

impl Budget {
    pub(crate) fn new(limits: RenderLimits) -> Self {
        Self {
            steps: Cell::new(limits.steps),
            iterations: Cell::new(limits.iterations),
            output: Cell::new(limits.output_bytes),
            limits,
        }
    }

    pub(crate) fn steps(&self, n: usize) -> Result<(), Exceeded> {
        match self.steps.get().checked_sub(n as u64) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => Err(Exceeded {
                what: "steps",
                limit: self.limits.steps,
            }),
        }
    }

    pub(crate) fn iteration(&self) -> Result<(), Exceeded> {
        match self.iterations.get().checked_sub(1) {
            Some(left) => {
                self.iterations.set(left);
                Ok(())
            }
            None => Err(Exceeded {
                what: "iterations",
                limit: self.limits.iterations,
            }),
        }
    }

    /// Whether a list of this length may be made.
    pub(crate) fn list(&self, len: usize) -> Result<(), Exceeded> {
        if len as u64 > self.limits.iterations {
            return Err(Exceeded {
                what: "list items",
                limit: self.limits.iterations,
            });
        }
        self.steps(len)
    }

    /// Whether a string of this length may be made. Long strings cost steps, so that a loop cannot make many.
    pub(crate) fn string(&self, len: usize) -> Result<(), Exceeded> {
        self.fits(len)?;
        self.steps(len / 256)
    }

    /// Whether a text that grows may have this length.
    pub(crate) fn fits(&self, len: usize) -> Result<(), Exceeded> {
        if len > self.limits.output_bytes {
            return Err(Exceeded {
                what: "bytes in a string",
                limit: self.limits.output_bytes as u64,
            });
        }
        Ok(())
    }

    /// Takes the output of a finished template.
    pub(crate) fn output(&self, len: usize) -> Result<(), Exceeded> {
        match self.output.get().checked_sub(len) {
            Some(left) => {
                self.output.set(left);
                Ok(())
            }
            None => Err(Exceeded {
                what: "bytes of output",
                limit: self.limits.output_bytes as u64,
            }),
        }
    }

    pub(crate) fn depth(&self, depth: usize) -> Result<(), Exceeded> {
        if depth > self.limits.depth {
            return Err(Exceeded {
                what: "nested templates",
                limit: self.limits.depth as u64,
            });
        }
        Ok(())
    }

    pub(crate) fn value_depth(depth: usize) -> Result<(), Exceeded> {
        if depth > MAX_VALUE_DEPTH {
            return Err(Exceeded {
                what: "levels in a value",
                limit: MAX_VALUE_DEPTH as u64,
            });
        }
        Ok(())
    }
}
