//! Calls with long bodies: how many bytes of them there are at once, and the thread on which they run, so that short
//! calls never wait for them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use baton_proto::bounds::{self, Excess};
use baton_proto::edge::REFUSED_BUSY;
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::MAX_BODY_LEN;
use super::gate::{Refusal, json, plain, unrun};
use crate::lane::Lane;

/// From this length on a body is long: a shorter one is read and built in less than a millisecond.
const LONG: u64 = 64 * 1024;
/// KiB of long bodies at once. While it is built a message takes some five times its bytes.
const BUDGET_KIB: u32 = 64 * 1024;
/// How long a call waits for its share; after that the coordinator, which knows what else there is, decides.
const SHARE_TIMEOUT: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub(super) struct Heavy {
    budget: Arc<Semaphore>,
    /// Started by the first long call; `None` when it could not be.
    lane: OnceLock<Option<Lane>>,
}

/// A body, and its share of the budget when it is long.
pub(super) struct Weighed {
    pub(super) body: Bytes,
    share: Option<OwnedSemaphorePermit>,
}

impl Heavy {
    pub(super) fn new() -> Self {
        Self { budget: Arc::new(Semaphore::new(BUDGET_KIB as usize)), lane: OnceLock::new() }
    }

    /// Reads a body as soon as there is room for it, and refuses one that would cost many times its bytes.
    pub(super) async fn read(&self, incoming: Incoming) -> Result<Weighed, Refusal> {
        let share = match self.share(&incoming).await {
            Ok(share) => share,
            Err(Busy) => {
                // To the end, or the answer would be lost with the connection.
                let mut rest = Limited::new(incoming, MAX_BODY_LEN);
                while let Some(Ok(_)) = rest.frame().await {}
                return Err(unrun(REFUSED_BUSY));
            }
        };
        let body = match Limited::new(incoming, MAX_BODY_LEN).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(plain(StatusCode::PAYLOAD_TOO_LARGE, "A call has at most 16 MiB."));
            }
            Err(_) => return Err(plain(StatusCode::BAD_REQUEST, "The body ended early.")),
        };
        let look = {
            let body = body.clone();
            move || bounds::check(&body).err().map(|excess| too_much(&body, excess))
        };
        let looked = match share {
            None => look(),
            Some(_) => tokio::task::spawn_blocking(look).await.unwrap_or_else(|_| Some(unrun(REFUSED_BUSY))),
        };
        match looked {
            None => Ok(Weighed { body, share }),
            Some(refused) => Err(refused),
        }
    }

    async fn share(&self, incoming: &Incoming) -> Result<Option<OwnedSemaphorePermit>, Busy> {
        let len = incoming.size_hint().upper().unwrap_or(MAX_BODY_LEN as u64).min(MAX_BODY_LEN as u64);
        if len < LONG {
            return Ok(None);
        }
        let n_kib = u32::try_from(len.div_ceil(1024)).unwrap_or(BUDGET_KIB);
        let share = self.budget.clone().acquire_many_owned(n_kib);
        let share = tokio::time::timeout(SHARE_TIMEOUT, share).await.map_err(|_| Busy)?;
        Ok(share.ok())
    }

    /// Runs a call: with a long body on the thread for those. It gives its share back when it has its answer.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        share: Option<OwnedSemaphorePermit>,
        call: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let Some(_share) = share else { return call.await };
        let start = || Lane::start("long-calls").inspect_err(|error| tracing::warn!("{error:#}")).ok();
        match self.lane.get_or_init(start) {
            Some(lane) => lane.run(call).await,
            None => call.await,
        }
    }
}

impl Weighed {
    pub(super) fn into_parts(self) -> (Bytes, Option<OwnedSemaphorePermit>) {
        (self.body, self.share)
    }
}

struct Busy;

/// An error of the protocol, for the request it is about.
fn too_much(body: &[u8], excess: Excess) -> Refusal {
    #[derive(Default, Deserialize)]
    struct Named<'a> {
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
    }
    const INVALID_PARAMS: i32 = -32_602;
    let named: Named<'_> = serde_json::from_slice(body).unwrap_or_default();
    let error = serde_json::json!({"code": INVALID_PARAMS, "message": excess.to_string()});
    let id = named.id.map_or("null", RawValue::get);
    json(StatusCode::OK, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}
