//! What the vendor's programs read from the environment: names come in, the values that are there go out. Read once, so that
//! tests hand in another.

/// What the environment says. An empty variable is none.
#[derive(Clone, Default)]
pub struct Environment {
    /// `AWS_REGION`, or `AWS_DEFAULT_REGION`.
    pub region: Option<String>,
    /// `AWS_ENDPOINT_URL_SQS`, or `AWS_ENDPOINT_URL`.
    pub sqs_endpoint: Option<String>,
    /// `AWS_ENDPOINT_URL_KINESIS`, or `AWS_ENDPOINT_URL`.
    pub kinesis_endpoint: Option<String>,
    /// `AWS_ACCESS_KEY_ID`.
    pub access_key_id: Option<String>,
    /// `AWS_SECRET_ACCESS_KEY`.
    pub secret_access_key: Option<String>,
    /// `AWS_SESSION_TOKEN`.
    pub session_token: Option<String>,
    /// `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI`, as a whole url, or `AWS_CONTAINER_CREDENTIALS_FULL_URI`.
    pub container: Option<String>,
    /// `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE`.
    pub container_token_file: Option<String>,
    /// `AWS_CONTAINER_AUTHORIZATION_TOKEN`.
    pub container_token: Option<String>,
    /// `AWS_EC2_METADATA_SERVICE_ENDPOINT`, or the address that every instance has; none where `AWS_EC2_METADATA_DISABLED`
    /// says so.
    pub instance: Option<String>,
}

/// Where a container finds its credentials.
const CONTAINER: &str = "http://169.254.170.2";

/// Where an instance finds its credentials.
const INSTANCE: &str = "http://169.254.169.254";

impl Environment {
    /// That of this process.
    pub fn of_process() -> Environment {
        Environment::read(|name| std::env::var(name).ok())
    }

    /// By what each variable has.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Environment {
        let get = |name: &str| variable(name).filter(|value| !value.is_empty());
        let endpoint = |service: &str| get(service).or_else(|| get("AWS_ENDPOINT_URL"));
        let relative = get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").map(|path| format!("{CONTAINER}{path}"));
        let disabled =
            get("AWS_EC2_METADATA_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let instance = get("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or_else(|| INSTANCE.to_owned());
        Environment {
            region: get("AWS_REGION").or_else(|| get("AWS_DEFAULT_REGION")),
            sqs_endpoint: endpoint("AWS_ENDPOINT_URL_SQS"),
            kinesis_endpoint: endpoint("AWS_ENDPOINT_URL_KINESIS"),
            access_key_id: get("AWS_ACCESS_KEY_ID"),
            secret_access_key: get("AWS_SECRET_ACCESS_KEY"),
            session_token: get("AWS_SESSION_TOKEN"),
            container: relative.or_else(|| get("AWS_CONTAINER_CREDENTIALS_FULL_URI")),
            container_token_file: get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
            container_token: get("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
            instance: (!disabled).then_some(instance),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Environment {
        Environment::read(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_more_special_variable_goes_before_the_general_one() {
        let read = of(&[
            ("AWS_DEFAULT_REGION", "eu-west-1"),
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ENDPOINT_URL", "http://all"),
            ("AWS_ENDPOINT_URL_SQS", "http://queues"),
            ("AWS_SESSION_TOKEN", ""),
        ]);
        assert_eq!(read.region.as_deref(), Some("eu-central-1"));
        assert_eq!(read.sqs_endpoint.as_deref(), Some("http://queues"));
        assert_eq!(read.kinesis_endpoint.as_deref(), Some("http://all"));
        assert_eq!(read.session_token, None);
    }

    #[test]
    fn a_container_is_asked_where_it_says_and_an_instance_unless_that_is_forbidden() {
        let read = of(&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x")]);
        assert_eq!(read.container.as_deref(), Some("http://169.254.170.2/v2/x"));
        assert_eq!(read.instance.as_deref(), Some("http://169.254.169.254"));
        let read = of(&[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/x"),
            ("AWS_EC2_METADATA_DISABLED", "True"),
        ]);
        assert_eq!(read.container.as_deref(), Some("http://127.0.0.1:1/x"));
        assert_eq!(read.instance, None);
    }
}
