//! The line to the cluster: counts calls, fails the one that it is told to, and lets the played
//! controllers act after each.

use std::cell::{Cell, RefCell};

use kube_apply::testing::FakeApi;
use kube_apply::{
    Access, Delete, Engine, Error, Evicted, Object, ObjectRef, Observed, Query, Result,
};
use mesh::proxy_status::ProxyStatus;
use migration::{Api, api::MANAGER};
use serde_json::Value;

use super::play;

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The caller is killed when the call is done: it sees no answer, and nothing after it happens.
    Kill,
    /// The server answers 500.
    Server,
    /// Somebody else was faster.
    Conflict,
    /// Done, but the answer is lost.
    Timeout,
    /// Never arrives.
    Reset,
}

/// A line to a cluster.
pub(crate) struct Line {
    fake: FakeApi,
    engine: Engine,
    calls: Cell<usize>,
    fault: Cell<Option<(usize, Fault)>>,
    dead: Cell<bool>,
    violations: RefCell<Vec<String>>,
}

impl Line {
    pub(crate) fn new(fake: &FakeApi) -> Self {
        Self {
            fake: fake.clone(),
            engine: fake.engine(),
            calls: Cell::new(0),
            fault: Cell::new(None),
            dead: Cell::new(false),
            violations: RefCell::default(),
        }
    }

    /// A line on which call number `call` (from 0) meets a fault.
    pub(crate) fn with_fault(fake: &FakeApi, call: usize, fault: Fault) -> Self {
        let line = Self::new(fake);
        line.fault.set(Some((call, fault)));
        line
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.get()
    }

    pub(crate) fn fake(&self) -> &FakeApi {
        &self.fake
    }

    /// Looks at the gateway now.
    pub(crate) fn look(&self) {
        let wrong = play::exposed(&self.fake);
        self.violations.borrow_mut().extend(wrong);
    }

    /// What was ever wrong with injection, as seen after every write.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.borrow().clone()
    }

    fn killed() -> Error {
        Error::Config {
            reason: "killed".to_owned(),
        }
    }

    async fn call<T>(
        &self,
        write: Option<&str>,
        done: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        if self.dead.get() {
            return Err(Self::killed());
        }
        let number = self.calls.get();
        self.calls.set(number + 1);
        let fault = self
            .fault
            .get()
            .filter(|(at, _)| *at == number)
            .map(|(_, fault)| fault);
        let lost = || Error::Unreachable {
            source: "the line was cut".into(),
        };
        match fault {
            Some(Fault::Server) => {
                return Err(Error::Server {
                    code: 500,
                    action: "this call".to_owned(),
                    message: "etcd".to_owned(),
                });
            }
            Some(Fault::Conflict) => {
                return Err(Error::Raced {
                    object: Box::new(ObjectRef::cluster("v1", "Namespace", "some")),
                });
            }
            Some(Fault::Reset) => return Err(lost()),
            Some(Fault::Kill | Fault::Timeout) | None => {}
        }
        let answer = done.await;
        if write.is_some_and(play::concerns) {
            let wrong = play::settle(&self.fake);
            self.violations.borrow_mut().extend(wrong);
        }
        if write.is_some_and(play::routes) {
            self.violations
                .borrow_mut()
                .extend(play::exposed(&self.fake));
        }
        match fault {
            Some(Fault::Kill) => {
                self.dead.set(true);
                Err(Self::killed())
            }
            Some(Fault::Timeout) => Err(lost()),
            _ => answer,
        }
    }
}

impl Api for Line {
    async fn read(&self, queries: &[Query]) -> Result<Observed> {
        self.call(None, self.engine.observe(queries)).await
    }

    async fn get(&self, id: &ObjectRef) -> Result<Option<Object>> {
        self.call(None, self.engine.get(id)).await
    }

    async fn create(&self, object: &Object, dry_run: bool) -> Result<Object> {
        let created = async {
            if dry_run && object.kind() == "Pod" {
                let mut value = object.value().clone();
                play::inject(&self.fake, &mut value);
                return Object::new(value);
            }
            self.engine.create(object, MANAGER, dry_run).await
        };
        self.call((!dry_run).then_some(object.kind()), created)
            .await
    }

    async fn apply(&self, object: &Object, manager: &str) -> Result<Object> {
        let applied = self.engine.apply_as(object, manager, true, false);
        self.call(Some(object.kind()), applied).await
    }

    async fn replace(&self, object: &Object) -> Result<Object> {
        self.call(Some(object.kind()), self.engine.replace(object, MANAGER))
            .await
    }

    async fn merge(&self, id: &ObjectRef, patch: &Value) -> Result<Object> {
        self.call(Some(&id.kind), self.engine.merge_patch(id, patch, MANAGER))
            .await
    }

    async fn delete(&self, id: &ObjectRef, options: &Delete) -> Result<bool> {
        let deleted = async {
            if play::is_guarded(&self.fake, id) {
                return Err(Error::Denied {
                    object: Box::new(id.clone()),
                    message: "guarded".to_owned(),
                });
            }
            self.engine.delete(id, options).await
        };
        self.call((!options.dry_run).then_some(&id.kind), deleted)
            .await
    }

    async fn evict(&self, namespace: &str, pod: &str) -> Result<Evicted> {
        self.call(Some("Pod"), self.engine.evict(namespace, pod, false))
            .await
    }

    async fn may(&self, accesses: &[Access]) -> Result<Vec<bool>> {
        self.call(None, self.engine.may(accesses)).await
    }

    async fn proxies(&self) -> Result<Vec<ProxyStatus>> {
        let fake = self.fake.clone();
        self.call(None, async move { Ok(play::proxies(&fake)) })
            .await
    }

    async fn mesh_roots(&self, namespace: &str, _revision: &str) -> Result<Vec<String>> {
        let (fake, namespace) = (self.fake.clone(), namespace.to_owned());
        self.call(None, async move { Ok(play::mesh_roots(&fake, &namespace)) })
            .await
    }

    async fn proxy_config(&self, _namespace: &str, _pod: &str) -> Result<String> {
        let fake = self.fake.clone();
        self.call(None, async move { Ok(play::envoy(&fake)) }).await
    }
}
