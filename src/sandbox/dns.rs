//! The DNS of the sandbox: the only authority for every name, over UDP and TCP on one port.
//!
//! Answers A for the hosts of the web, an empty NOERROR for other types of those names, SERVFAIL
//! for one name and NXDOMAIN with SOA for all others. It recurses nowhere.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, SOA};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::debug;

use super::site::{FAILING_NAME, ZONE, host_number};
use crate::world::Clock;

/// How long an answer may be kept, in seconds.
const TTL_SECS: u32 = 60;
/// A query over UDP that is longer is cut, and then not understood, in bytes.
const QUERY_BYTES_MAX: usize = 1232;
/// Connections over TCP at once; more are closed at once.
const CONNECTIONS_MAX: usize = 32;
/// How long a connection over TCP may last.
const CONNECTION_LIFE: Duration = Duration::from_secs(10);
/// Ports tried until one is free for UDP and for TCP.
const BIND_ATTEMPTS: usize = 16;

/// The names of the sandbox.
#[derive(Debug)]
pub(super) struct Zone {
    /// How many hosts there are.
    pub(super) hosts: u16,
    /// What carries them, in turn; never empty.
    pub(super) addresses: Vec<Ipv4Addr>,
}

impl Zone {
    /// The address of a host by its number.
    pub(super) fn address(&self, host: u16) -> Option<Ipv4Addr> {
        let count = self.addresses.len();
        self.addresses.get(usize::from(host).checked_rem(count)?).copied()
    }

    /// The answer to a query as bytes; `None` when it is not a query that can be answered.
    fn answer(&self, query: &[u8]) -> Option<Vec<u8>> {
        let query = Message::from_vec(query).ok()?;
        if query.metadata.message_type != MessageType::Query {
            return None;
        }
        let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
        answer.metadata.recursion_desired = query.metadata.recursion_desired;
        answer.metadata.authoritative = true;
        answer.add_queries(query.queries.iter().cloned());
        if query.edns.is_some() {
            let mut edns = Edns::new();
            edns.set_max_payload(u16::try_from(QUERY_BYTES_MAX).unwrap_or(512));
            answer.set_edns(edns);
        }
        match query.queries.as_slice() {
            [question] if query.metadata.op_code == OpCode::Query => {
                self.fill(question, &mut answer);
            }
            _ => answer.metadata.response_code = ResponseCode::NotImp,
        }
        answer.to_vec().ok()
    }

    fn fill(&self, question: &Query, answer: &mut Message) {
        let name = question.name().to_lowercase().to_ascii();
        let name = name.trim_end_matches('.');
        let host = host_number(name, self.hosts).and_then(|host| self.address(host));
        if name == FAILING_NAME {
            answer.metadata.response_code = ResponseCode::ServFail;
        } else if let Some(address) = host {
            if question.query_type() == RecordType::A {
                let data = RData::A(A(address));
                answer.add_answer(Record::from_rdata(question.name().clone(), TTL_SECS, data));
            } else {
                answer.add_authority(authority(name));
            }
        } else {
            if name != ZONE {
                answer.metadata.response_code = ResponseCode::NXDomain;
            }
            answer.add_authority(authority(name));
        }
    }
}

/// The SOA record of the zone a name is in: the sandbox's, or the root's for all others.
fn authority(name: &str) -> Record {
    let inside = name.strip_suffix(ZONE).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let zone = if inside { Name::from_ascii("test.") } else { Ok(Name::root()) };
    let zone = zone.expect("a constant that is a name");
    let soa = SOA::new(zone.clone(), zone.clone(), 1, 3600, 600, 86_400, TTL_SECS);
    Record::from_rdata(zone, TTL_SECS, RData::SOA(soa))
}

/// The sockets, on one port.
#[derive(Debug)]
pub(super) struct Sockets {
    udp: UdpSocket,
    tcp: TcpListener,
    pub(super) address: SocketAddr,
}

impl Sockets {
    /// Binds a port of 127.0.0.1 that is free for UDP and for TCP.
    pub(super) async fn bind() -> io::Result<Self> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let address = udp.local_addr()?;
            match TcpListener::bind(address).await {
                Ok(tcp) => return Ok(Self { udp, tcp, address }),
                Err(error) if attempts >= BIND_ATTEMPTS => return Err(error),
                Err(error) => debug!(%error, %address, "sandbox tries another port for DNS"),
            }
        }
    }

    /// Answers until told to stop.
    pub(super) async fn serve(
        self,
        zone: Arc<Zone>,
        clock: Arc<dyn Clock>,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut buffer = [0; QUERY_BYTES_MAX];
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                _ = stop.changed() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                received = self.udp.recv_from(&mut buffer) => {
                    let Ok((length, from)) = received else { continue };
                    let Some(answer) = buffer.get(..length).and_then(|query| zone.answer(query))
                    else { continue };
                    if let Err(error) = self.udp.send_to(&answer, from).await {
                        debug!(%error, %from, "sandbox failed to answer a DNS query");
                    }
                }
                accepted = self.tcp.accept() => {
                    if let Ok((stream, _)) = accepted && connections.len() < CONNECTIONS_MAX {
                        let (zone, clock) = (Arc::clone(&zone), Arc::clone(&clock));
                        connections.spawn(async move {
                            tokio::select! {
                                biased;
                                () = clock.sleep(CONNECTION_LIFE) => {}
                                ended = converse(stream, &zone) => {
                                    if let Err(error) = ended {
                                        debug!(%error, "sandbox DNS connection ended early");
                                    }
                                }
                            }
                        });
                    }
                }
            }
        }
        connections.shutdown().await;
    }
}

/// Answers the queries of one connection, each with its length before it.
async fn converse(mut stream: TcpStream, zone: &Zone) -> io::Result<()> {
    loop {
        let length = match stream.read_u16().await {
            Ok(length) => usize::from(length),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut query = vec![0; length];
        stream.read_exact(&mut query).await?;
        let Some(answer) = zone.answer(&query) else { return Ok(()) };
        let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
        stream.write_u16(length).await?;
        stream.write_all(&answer).await?;
    }
}
