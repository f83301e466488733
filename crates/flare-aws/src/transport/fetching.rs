//! Credentials that somebody hands out: an environment comes in; the endpoint of a container or of an instance is asked, and
//! credentials that end go out, or why there are none.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_model::time::Timestamp;
use flare_wire::{Answer, Beginning, Method, Name, Request, Room, Value};
use serde::Deserialize;
use tokio_rustls::rustls::ClientConfig;

use super::address::Address;
use super::credentials::Credentials;
use super::environment::Environment;
use super::host::{Host, Silence};

/// These endpoints are a hop away. Where there is none, nobody answers at all, and the user should not wait long to hear of it.
const DIALLING: Duration = Duration::from_secs(1);

const ANSWERING: Duration = Duration::from_secs(5);

/// What somebody without credentials may do.
const REMEDY: &str = "set provider.aws.access-key-id and provider.aws.secret-access-key, or AWS_ACCESS_KEY_ID and \
                      AWS_SECRET_ACCESS_KEY";

/// Both endpoints write the same.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Written {
    access_key_id: String,
    secret_access_key: String,
    token: String,
    expiration: String,
}

/// Asks a container's endpoint where there is one, otherwise an instance's.
pub async fn fetch(environment: &Environment, tls: &Arc<ClientConfig>) -> Result<Credentials, String> {
    let fetched = match (&environment.container, &environment.instance) {
        (Some(url), _) => of_container(url, environment, tls).await,
        (None, Some(url)) => of_instance(url, tls).await,
        (None, None) => Err("the environment names nobody who has some".to_owned()),
    };
    fetched.map_err(|why| format!("there are no credentials ({why}): {REMEDY}"))
}

async fn of_container(
    url: &str,
    environment: &Environment,
    tls: &Arc<ClientConfig>,
) -> Result<Credentials, String> {
    let (address, path) = Address::parse(url).map_err(|mistake| mistake.to_string())?;
    if !may_have_secrets(&address) {
        return Err(format!("{} is neither https nor this machine's own", address.authority()));
    }
    // The file goes first: it is written anew before the token in it ends.
    let token = match &environment.container_token_file {
        Some(file) => {
            Some(std::fs::read_to_string(file).map_err(|error| format!("reading {file}: {error}"))?)
        }
        None => environment.container_token.clone(),
    };
    let token = token.as_deref().map(str::trim);
    let fields: Vec<_> = token.iter().map(|token| ("authorization", *token)).collect();
    let host = Host::new(address.clone(), tls.clone());
    let answer = ask(&host, &address, Method::Get, &path, &fields).await?;
    read(&answer)
}

/// Over plain HTTP credentials are only taken from addresses that cannot be somebody else's.
fn may_have_secrets(address: &Address) -> bool {
    let local = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23", "localhost"];
    let loopback = address.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    address.secure || loopback || local.contains(&address.host.as_str())
}

/// The second version of the instance's service: a token first, so that a request forged through a proxy gets nothing.
async fn of_instance(url: &str, tls: &Arc<ClientConfig>) -> Result<Credentials, String> {
    const ROLES: &str = "/latest/meta-data/iam/security-credentials/";
    let (address, _) = Address::parse(url).map_err(|mistake| mistake.to_string())?;
    let host = Host::new(address.clone(), tls.clone());
    let lifetime = [("x-aws-ec2-metadata-token-ttl-seconds", "300")];
    let token = text(&ask(&host, &address, Method::Put, "/latest/api/token", &lifetime).await?)?;
    let token = [("x-aws-ec2-metadata-token", token.as_str())];
    let roles = text(&ask(&host, &address, Method::Get, ROLES, &token).await?)?;
    let role = roles.lines().next().ok_or("the instance has no role")?;
    read(&ask(&host, &address, Method::Get, &format!("{ROLES}{role}"), &token).await?)
}

async fn ask(
    host: &Host,
    address: &Address,
    method: Method,
    path: &str,
    fields: &[(&'static str, &str)],
) -> Result<Answer, String> {
    let checked: Result<Vec<_>, _> = fields
        .iter()
        .map(|(name, value)| Ok((Name::fixed(name), Value::new(value.as_bytes())?)))
        .collect::<Result<_, flare_wire::BadField>>();
    let checked = checked.map_err(|_| "the token has a control character".to_owned())?;
    let beginning = Beginning::new(method, &address.authority(), checked).map_err(|bad| bad.to_string())?;
    let mut request = Request::new(Room::default(), &beginning, |target| target.push_str(path));
    request.set_body(Bytes::new());
    match host.ask(request, DIALLING, ANSWERING).await {
        Ok(answer) if answer.status == 200 => Ok(answer),
        Ok(answer) => Err(format!("{} answered {}", address.authority(), answer.status)),
        Err(Silence::Unsent(why) | Silence::Unanswered(why)) => Err(why),
    }
}

fn text(answer: &Answer) -> Result<String, String> {
    let text = std::str::from_utf8(&answer.excerpt).map_err(|_| "the answer is not text")?;
    Ok(text.trim().to_owned())
}

/// What it says is not shown where it cannot be read: there may be secrets in it.
fn read(answer: &Answer) -> Result<Credentials, String> {
    let written: Written =
        serde_json::from_slice(&answer.excerpt).map_err(|_| "what was answered is not credentials")?;
    let expires: Timestamp = written.expiration.parse().map_err(|_| "they end at what is no time")?;
    Ok(Credentials {
        access_key_id: written.access_key_id,
        secret_access_key: written.secret_access_key,
        session_token: Some(written.token),
        expires: Some(expires),
    })
}
