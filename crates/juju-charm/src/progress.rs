//! How far the work has got, told while it goes on.

use juju_hooks::LogLevel;

use crate::flow::Host;

/// Where work tells its progress.
pub trait Progress {
    /// One line, without secrets. In an action whoever runs it sees the line at once
    /// (`action-log`); in other hooks it goes to the log. Telling never fails: if Juju does not
    /// take the line, the log does.
    fn say(&self, line: &str);
}

/// Progress that goes to Juju.
pub(crate) struct Told<'a> {
    pub(crate) host: Host<'a>,
    pub(crate) in_action: bool,
}

impl Progress for Told<'_> {
    fn say(&self, line: &str) {
        let Host { tools, log, .. } = self.host;
        // What was logged before the line comes before it.
        log.flush(tools);
        let refused = self
            .in_action
            .then(|| tools.action_log(line))
            .is_none_or(|told| told.is_err());
        if refused {
            log.push(LogLevel::Info, line);
            log.flush(tools);
        }
    }
}
