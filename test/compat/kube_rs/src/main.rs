//! A greeter on kube-rs: for each Greeting a ConfigMap that says its text, an Event, and a farewell.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, CustomResource, Resource, ResourceExt,
    api::{ListParams, ObjectMeta, Patch, PatchParams},
    runtime::{
        controller::{self, Action, Controller},
        events::{Event as Note, EventType, Recorder, Reporter},
        finalizer::{self, Event, finalizer},
        watcher,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tracing::{Level, warn};

const MANAGER: &str = "greeter-kube-rs";
const FINALIZER: &str = "compat.example.com/farewell";
const RETRY: Duration = Duration::from_secs(1);

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "compat.example.com",
    version = "v1",
    kind = "Greeting",
    namespaced,
    status = "GreetingStatus"
)]
struct GreetingSpec {
    text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct GreetingStatus {
    observed_generation: i64,
    said: String,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("Kubernetes API: {0}")]
    Kube(#[from] kube::Error),
    #[error("{0}")]
    Finalizer(#[source] Box<finalizer::Error<Error>>),
    #[error("object has no {0}")]
    Missing(&'static str),
}

struct Context {
    client: Client,
    recorder: Recorder,
}

async fn reconcile(greeting: Arc<Greeting>, ctx: Arc<Context>) -> Result<Action, Error> {
    let namespace = greeting.namespace().ok_or(Error::Missing("namespace"))?;
    let greetings = Api::<Greeting>::namespaced(ctx.client.clone(), &namespace);
    finalizer(&greetings, FINALIZER, greeting, |event| async {
        match event {
            Event::Apply(greeting) => greet(&greeting, &namespace, &greetings, &ctx).await,
            Event::Cleanup(greeting) => bid_farewell(&greeting, &namespace, &ctx).await,
        }
    })
    .await
    .map_err(|e| Error::Finalizer(Box::new(e)))
}

fn config_map(name: &str, namespace: &str, text: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("text".to_owned(), text.to_owned())])),
        ..ConfigMap::default()
    }
}

async fn say(ctx: &Context, namespace: &str, wanted: &ConfigMap) -> Result<(), Error> {
    let params = PatchParams::apply(MANAGER).force();
    Api::<ConfigMap>::namespaced(ctx.client.clone(), namespace)
        .patch(&wanted.name_any(), &params, &Patch::Apply(wanted))
        .await?;
    Ok(())
}

async fn greet(
    greeting: &Greeting,
    namespace: &str,
    greetings: &Api<Greeting>,
    ctx: &Context,
) -> Result<Action, Error> {
    let name = greeting.name_any();
    let mut wanted = config_map(&name, namespace, &greeting.spec.text);
    let owner = greeting.controller_owner_ref(&()).ok_or(Error::Missing("uid"))?;
    wanted.metadata.owner_references = Some(vec![owner]);
    say(ctx, namespace, &wanted).await?;

    let status = GreetingStatus {
        observed_generation: greeting.metadata.generation.unwrap_or(0),
        said: greeting.spec.text.clone(),
    };
    if greeting.status.as_ref() != Some(&status) {
        let note = Note {
            type_: EventType::Normal,
            reason: "Greeted".to_owned(),
            note: Some(format!("said {}", status.said)),
            action: "Greet".to_owned(),
            secondary: None,
        };
        ctx.recorder.publish(&note, &greeting.object_ref(&())).await?;
        let patch = json!({
            "apiVersion": Greeting::api_version(&()),
            "kind": Greeting::kind(&()),
            "status": status,
        });
        greetings
            .patch_status(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(patch))
            .await?;
    }
    Ok(Action::await_change())
}

async fn bid_farewell(
    greeting: &Greeting,
    namespace: &str,
    ctx: &Context,
) -> Result<Action, Error> {
    let name = format!("farewell-{}", greeting.name_any());
    say(ctx, namespace, &config_map(&name, namespace, &greeting.spec.text)).await?;
    Ok(Action::await_change())
}

fn on_error(greeting: Arc<Greeting>, error: &Error, _: Arc<Context>) -> Action {
    warn!("{}: reconcile failed: {error}", greeting.name_any());
    Action::requeue(RETRY)
}

/// Fails if a client that reads page by page does not get all objects.
async fn count_in_pages(client: &Client) -> Result<usize, Error> {
    let all = Api::<ConfigMap>::all(client.clone());
    let mut params = ListParams::default().limit(2);
    let mut count = 0;
    loop {
        let page = all.list(&params).await?;
        count += page.items.len();
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params = params.continue_token(&token),
            _ => return Ok(count),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_max_level(Level::WARN)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let client = Client::try_default().await?;
    let version = client.apiserver_version().await?;
    let seen = count_in_pages(&client).await?;
    eprintln!("server {}.{}, {seen} ConfigMaps", version.major, version.minor);

    // One informer lists and then watches, the other lists by watching.
    let controller = Controller::new(
        Api::<Greeting>::all(client.clone()),
        watcher::Config::default().streaming_lists(),
    )
    .owns(Api::<ConfigMap>::all(client.clone()), watcher::Config::default().page_size(2))
    .shutdown_on_signal();
    let recorder = Recorder::new(client.clone(), Reporter::from(MANAGER));
    controller
        .run(reconcile, on_error, Arc::new(Context { client, recorder }))
        .for_each(|result| async move {
            match result {
                // A failed reconcile was reported by on_error; an object that is gone was named by a
                // late event of its ConfigMap.
                Ok(_)
                | Err(
                    controller::Error::ReconcilerFailed(..) | controller::Error::ObjectNotFound(..),
                ) => {}
                Err(error) => warn!("controller: {error}"),
            }
        })
        .await;
    Ok(())
}
