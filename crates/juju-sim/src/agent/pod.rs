//! The charm's own view of the file system: the service account where a pod has it.
//!
//! The charm runs in a mount namespace of its own, in which `/run` is a small memory file system
//! that holds nothing but the service account. Nothing of it is seen, or left, outside.

use std::path::Path;
use std::time::Duration;

use crate::Model;
use crate::agent::process;
use crate::agent::process::End;
use crate::cloud::Credentials;

/// Mounts the service account where a charm pod has it, then becomes the charm. Token, namespace
/// and certificate come on standard input, so they are on no command line and in no file.
const IN_POD: &str = r#"set -e
mount -t tmpfs -o mode=0755,size=1m tmpfs /run
[ /var/run -ef /run ] || mount -t tmpfs -o mode=0755,size=1m tmpfs /var/run
d=/var/run/secrets/kubernetes.io/serviceaccount
mkdir -p "$d"
IFS= read -r token
IFS= read -r namespace
printf %s "$token" > "$d/token"
printf %s "$namespace" > "$d/namespace"
cat > "$d/ca.crt"
unset PWD OLDPWD SHLVL d token namespace
exec "$@" < /dev/null
"#;

pub(super) fn in_pod(
    argv: Vec<String>,
    credentials: &Credentials,
) -> (Vec<String>, Option<String>) {
    let mut wrapped: Vec<String> = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--",
        "/bin/sh",
        "-c",
        IN_POD,
        "sh",
    ]
    .map(ToOwned::to_owned)
    .to_vec();
    wrapped.extend(argv);
    let stdin = format!(
        "{}\n{}\n{}",
        credentials.token, credentials.namespace, credentials.ca_crt
    );
    (wrapped, Some(stdin))
}

/// Whether the charm can get mounts of its own: root with the right to mount, and a model that the
/// mount on `/run` does not hide. Asked once per model and process.
pub(super) fn private_mounts(model: &mut Model, dir: &Path) -> bool {
    if let Some(known) = model.namespaces {
        return known;
    }
    let argv = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--",
        "true",
    ];
    let env = [("PATH".to_owned(), model.options.agent_path.clone())].into();
    let spec = process::Spec {
        argv: argv.map(ToOwned::to_owned).to_vec(),
        env: &env,
        dir,
        stdin: None,
        limit: Duration::from_secs(10),
    };
    let possible = rustix::process::geteuid().is_root()
        && !dir.starts_with("/run")
        && process::run(spec, |_, _| {}).is_ok_and(|ran| ran.end == End::Exit(0));
    model.namespaces = Some(possible);
    possible
}
