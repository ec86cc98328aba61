//! Signal from station statistics: what the driver of an 802.11 interface remembers of each station
//! it hears (nl80211, `iw dev IFACE station dump`), and how busy its channel is (`survey dump`).
//!
//! In OCB mode mac80211 keeps statistics of whoever it heard a frame of. They say how strong the
//! *last* frame was, however long ago; so a measurement counts only if more frames came since the
//! last time.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::time::Duration;

use futures_util::stream::TryStreamExt;
use rustix::net::{AddressFamily, SocketType, netdevice::name_to_index};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{debug, info, warn};
use wl_nl80211::packet_core::Nla;
use wl_nl80211::{
    Nl80211Attr, Nl80211Error, Nl80211Handle, Nl80211Interface, Nl80211Message, Nl80211StationInfo,
    Nl80211Survey, Nl80211SurveyInfo,
};

use super::reports::{Reports, Sample};
use crate::device::error::{DeviceError, Problem};
use crate::device::name;
use crate::mac::Mac;

/// Between two dumps: what a trend averages over (`obu_lib`, `link/trend.rs`).
pub const EVERY: Duration = Duration::from_millis(100);
/// Between two surveys: what a load is measured over.
const SURVEY_EVERY: Duration = Duration::from_secs(1);
/// After a failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Stations of one dump at most; the kernel says first whom it came to know last.
const STATIONS_MAX: usize = 1024;
/// `NL80211_SURVEY_INFO_IN_USE`, a flag, which the crate has no name for.
const SURVEY_IN_USE: u16 = 3;

/// What a driver remembers of one station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationInfo {
    /// Its address.
    pub mac: Mac,
    /// How strong its last frame was, in dBm; else an average.
    pub dbm: i8,
    /// Frames received of it, as a number that wraps.
    pub received: Option<u32>,
    /// Since it was last heard, or last acknowledged a frame of ours.
    pub inactive: Option<Duration>,
}

/// How a radio has spent its time on a channel, since the driver began to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Listening or sending, in milliseconds.
    pub active_ms: u64,
    /// Of that, the channel was busy, in milliseconds.
    pub busy_ms: u64,
}

/// Who can be asked.
pub(super) trait Driver: Send {
    /// Its interface.
    fn interface(&self) -> &str;

    /// All stations it knows.
    fn stations(&mut self) -> impl Future<Output = Result<Vec<StationInfo>, DeviceError>> + Send;

    /// The channel in use, if it counts its time.
    fn survey(&mut self) -> impl Future<Output = Result<Option<Survey>, DeviceError>> + Send;
}

/// The driver of an 802.11 interface, by generic netlink.
#[derive(Debug)]
pub struct Nl80211 {
    interface: String,
    handle: Nl80211Handle,
}

impl Nl80211 {
    /// Asks the kernel whether `interface` is one of 802.11. Must run inside a tokio runtime with
    /// I/O.
    ///
    /// # Errors
    /// There is no such interface, or it is none of 802.11, or the kernel has no 802.11 at all.
    pub async fn open(interface: &str) -> Result<Self, DeviceError> {
        name::check(interface)?;
        let error = |source: Problem| DeviceError::new(interface, OPERATION, source);
        let index = index_of(interface)?;
        let (connection, handle, _) =
            wl_nl80211::new_connection().map_err(|cause| error(cause.into()))?;
        tokio::spawn(connection);
        let attributes = Nl80211Interface::new(index).build();
        let mut answer = handle.interface().get(attributes).execute().await;
        match answer.try_next().await {
            Ok(Some(_)) => Ok(Self { interface: interface.to_owned(), handle }),
            Ok(None) => Err(error(Problem::NoStationStatistics("no answer".into()))),
            Err(cause) => Err(error(problem(cause))),
        }
    }

    /// Its interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }
}

const OPERATION: &str = "ask for the signal of stations";
const SURVEY_OPERATION: &str = "ask how busy the channel is";

fn index_of(interface: &str) -> Result<u32, DeviceError> {
    let index = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)
        .and_then(|socket| name_to_index(&socket, interface));
    index.map_err(|errno| {
        let source = match errno {
            rustix::io::Errno::NODEV => Problem::NoSuchInterface,
            other => Problem::Io(other.into()),
        };
        DeviceError::new(interface, OPERATION, source)
    })
}

fn problem(error: Nl80211Error) -> Problem {
    match error {
        Nl80211Error::NetlinkError(error) => {
            let cause = error.to_io();
            match cause.raw_os_error() {
                Some(libc::ENODEV) => Problem::NoStationStatistics("no 802.11 interface".into()),
                Some(libc::EOPNOTSUPP) => {
                    Problem::NoStationStatistics("its driver keeps none".into())
                }
                Some(libc::EPERM | libc::EACCES) => Problem::MissingCapability("CAP_NET_ADMIN"),
                _ => Problem::Io(cause),
            }
        }
        // The family of messages is not there: no driver of 802.11 is loaded.
        Nl80211Error::RequestFailed(_) => {
            Problem::NoStationStatistics("no 802.11 driver is loaded".into())
        }
        other => Problem::Io(io::Error::other(other)),
    }
}

impl Driver for Nl80211 {
    fn interface(&self) -> &str {
        &self.interface
    }

    async fn stations(&mut self) -> Result<Vec<StationInfo>, DeviceError> {
        let index = index_of(&self.interface)?;
        let mut dump = self.handle.station().dump(index).execute().await;
        let mut stations = Vec::new();
        let error = |cause| DeviceError::new(&self.interface, OPERATION, problem(cause));
        while let Some(message) = dump.try_next().await.map_err(error)? {
            if stations.len() < STATIONS_MAX {
                stations.extend(station(&message.payload));
            }
        }
        Ok(stations)
    }

    async fn survey(&mut self) -> Result<Option<Survey>, DeviceError> {
        let index = index_of(&self.interface)?;
        let request = Nl80211Survey::new(index).build();
        let mut dump = self.handle.survey().dump(request).execute().await;
        let mut in_use = None;
        let error = |cause| DeviceError::new(&self.interface, SURVEY_OPERATION, problem(cause));
        while let Some(message) = dump.try_next().await.map_err(error)? {
            in_use = survey(&message.payload).or(in_use);
        }
        Ok(in_use)
    }
}

/// One station of a dump; `None` if its signal is not told.
fn station(message: &Nl80211Message) -> Option<StationInfo> {
    let mac = message.attributes.iter().find_map(|attribute| match attribute {
        Nl80211Attr::Mac(mac) => Some(Mac(*mac)),
        _ => None,
    })?;
    let (mut last, mut mean, mut received, mut inactive) = (None, None, None, None);
    let told = message.attributes.iter().filter_map(|attribute| match attribute {
        Nl80211Attr::StationInfo(told) => Some(told),
        _ => None,
    });
    for told in told.flatten() {
        match told {
            Nl80211StationInfo::Signal(dbm) => last = Some(*dbm),
            Nl80211StationInfo::SignalAvg(dbm) => mean = Some(*dbm),
            Nl80211StationInfo::RxPackets(frames) => received = Some(*frames),
            Nl80211StationInfo::InactiveTime(ms) => {
                inactive = Some(Duration::from_millis(u64::from(*ms)));
            }
            _ => {}
        }
    }
    Some(StationInfo { mac, dbm: last.or(mean)?, received, inactive })
}

/// One channel of a dump, if it is the one in use and its time is counted.
fn survey(message: &Nl80211Message) -> Option<Survey> {
    let told = message.attributes.iter().find_map(|attribute| match attribute {
        Nl80211Attr::SurveyInfo(told) => Some(told),
        _ => None,
    })?;
    let (mut is_in_use, mut active, mut busy) = (false, None, None);
    for told in told {
        match told {
            Nl80211SurveyInfo::ActiveTime(ms) => active = Some(*ms),
            Nl80211SurveyInfo::BusyTime(ms) => busy = Some(*ms),
            Nl80211SurveyInfo::Other(other) => is_in_use |= other.kind() == SURVEY_IN_USE,
            _ => {}
        }
    }
    active.zip(busy).filter(|_| is_in_use).map(|(active_ms, busy_ms)| Survey { active_ms, busy_ms })
}

/// Tells new measurements from ones already taken.
#[derive(Debug, Default)]
struct News {
    /// Frames received of each station at the last dump, of those in it.
    received: BTreeMap<Mac, u32>,
}

impl News {
    /// Measurements of stations that were heard since the last dump, `every` ago.
    fn of(&mut self, stations: &[StationInfo], every: Duration) -> Vec<Sample> {
        let before = std::mem::take(&mut self.received);
        let mut news = Vec::new();
        for station in stations {
            let is_lately = station.inactive.is_none_or(|inactive| inactive <= every);
            let is_new = match (station.received, before.get(&station.mac)) {
                (Some(now), Some(before)) => now != *before,
                // Heard before we asked for the first time, or a driver that does not count.
                _ => is_lately,
            };
            if let Some(received) = station.received {
                self.received.insert(station.mac, received);
            }
            news.extend(Sample::new(station.mac, station.dbm).filter(|_| is_new));
        }
        news
    }
}

/// Whether a driver answers. Failures are counted; the log tells the first one, and their end.
struct Health {
    works: bool,
}

impl Health {
    fn new() -> Self {
        Self { works: true }
    }

    /// It answers; what to say if it did not.
    fn answers(&mut self, interface: &str, news: &str) {
        if !std::mem::replace(&mut self.works, true) {
            info!(interface, "{news}");
        }
    }

    fn fails(&mut self, reports: &Reports, error: &DeviceError) {
        reports.count(|counters| counters.failures += 1);
        if std::mem::replace(&mut self.works, false) {
            warn!(cause = %error.source, "{error}; trying again");
        }
    }
}

/// Hands over what `driver` tells, asked `every` so often, for ever.
pub(super) async fn watch(mut driver: impl Driver, reports: Reports, every: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut news, mut health) = (News::default(), Health::new());
    let mut survey_at = Some(Instant::now());
    loop {
        ticks.tick().await;
        match driver.stations().await {
            Ok(stations) => {
                health.answers(driver.interface(), "signal strength is told again");
                reports.add(news.of(&stations, every));
            }
            Err(error) => {
                health.fails(&reports, &error);
                ticks.reset_after(RETRY_AFTER.max(every));
                continue;
            }
        }
        if survey_at.is_some_and(|at| at <= Instant::now()) {
            survey_at = match driver.survey().await {
                Ok(Some(Survey { active_ms, busy_ms })) => {
                    reports.note_survey(active_ms, busy_ms);
                    Some(Instant::now() + SURVEY_EVERY)
                }
                Ok(None) => Some(Instant::now() + SURVEY_EVERY),
                Err(error) => {
                    debug!(cause = %error.source, "no survey of the channel: {error}");
                    None
                }
            };
        }
    }
}

/// Hands over how busy `driver` says its channel is, for ever: for who asks for nothing else, and
/// has no use for what ten dumps a second say of all stations.
pub(super) async fn watch_channel(mut driver: impl Driver, reports: Reports) {
    let mut ticks = interval(SURVEY_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut health = Health::new();
    loop {
        ticks.tick().await;
        match driver.survey().await {
            Ok(survey) => {
                health.answers(driver.interface(), "the radio tells its channel again");
                if let Some(Survey { active_ms, busy_ms }) = survey {
                    reports.note_survey(active_ms, busy_ms);
                }
            }
            Err(error) => health.fails(&reports, &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll, Waker};

    use super::*;
    use wl_nl80211::packet_core::ParseableParametrized;
    use wl_nl80211::packet_generic::GenlHeader;

    const GET_STATION: u8 = 17;
    const NEW_STATION: u8 = 19;
    const NEW_SURVEY_RESULTS: u8 = 51;
    const ATTR_IFINDEX: u16 = 3;
    const ATTR_MAC: u16 = 6;
    const ATTR_STA_INFO: u16 = 21;
    const ATTR_GENERATION: u16 = 46;
    const ATTR_SURVEY_INFO: u16 = 84;

    /// One attribute as the kernel writes it: length, kind, value, and zeroes up to four bytes.
    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let len = u16::try_from(4 + value.len()).unwrap();
        let mut bytes = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn nested(kind: u16, of: &[Vec<u8>]) -> Vec<u8> {
        attribute(kind | 1 << 15, &of.concat())
    }

    fn message(cmd: u8, attributes: &[Vec<u8>]) -> Nl80211Message {
        let header = GenlHeader { cmd, version: 1 };
        Nl80211Message::parse_with_param(&attributes.concat()[..], header).unwrap()
    }

    fn mac(n: u8) -> Mac {
        Mac([2, 0, 0, 0, 0, n])
    }

    fn of_station(told: &[Vec<u8>]) -> Option<StationInfo> {
        station(&message(
            NEW_STATION,
            &[
                attribute(ATTR_IFINDEX, &7_u32.to_ne_bytes()),
                attribute(ATTR_MAC, &mac(1).0),
                attribute(ATTR_GENERATION, &1_u32.to_ne_bytes()),
                nested(ATTR_STA_INFO, told),
            ],
        ))
    }

    #[test]
    fn a_station_is_read_from_the_words_of_mac80211() {
        let told = [
            attribute(1, &40_u32.to_ne_bytes()),
            attribute(16, &12_u32.to_ne_bytes()),
            attribute(9, &1234_u32.to_ne_bytes()),
            attribute(7, &[(-71_i8) as u8]),
            attribute(13, &[(-69_i8) as u8]),
            // Signal of each chain.
            nested(25, &[attribute(0, &[(-72_i8) as u8]), attribute(1, &[(-80_i8) as u8])]),
            // Something newer than this program.
            attribute(99, &[1, 2, 3, 4]),
        ];
        let inactive = Some(Duration::from_millis(40));
        let whole = StationInfo { mac: mac(1), dbm: -71, received: Some(1234), inactive };
        assert_eq!(of_station(&told), Some(whole));
        let mean_only = [told[4].clone()];
        let station = StationInfo { mac: mac(1), dbm: -69, received: None, inactive: None };
        assert_eq!(of_station(&mean_only), Some(station));
        assert_eq!(of_station(&told[..3]), None, "it does not say how strong");
        assert_eq!(station_without_address(&told), None);
    }

    fn station_without_address(told: &[Vec<u8>]) -> Option<StationInfo> {
        station(&message(GET_STATION, &[nested(ATTR_STA_INFO, told)]))
    }

    #[test]
    fn of_a_survey_the_channel_in_use_is_taken() {
        let channel = |told: &[Vec<u8>]| {
            survey(&message(NEW_SURVEY_RESULTS, &[nested(ATTR_SURVEY_INFO, told)]))
        };
        let frequency = attribute(1, &5900_u32.to_ne_bytes());
        let (active, busy) = (1000_u64.to_ne_bytes(), 230_u64.to_ne_bytes());
        let times = [attribute(4, &active), attribute(5, &busy), attribute(2, &[0xa5])];
        let in_use = attribute(3, &[]);
        let told = [&[frequency.clone(), in_use.clone()][..], &times].concat();
        assert_eq!(channel(&told), Some(Survey { active_ms: 1000, busy_ms: 230 }));
        assert_eq!(channel(&[&[frequency.clone()][..], &times].concat()), None, "another channel");
        assert_eq!(channel(&[frequency, in_use]), None, "its time is not counted");
        assert_eq!(survey(&message(NEW_SURVEY_RESULTS, &[])), None);
    }

    fn heard(n: u8, dbm: i8, received: u32, inactive_ms: u64) -> StationInfo {
        let inactive = Some(Duration::from_millis(inactive_ms));
        StationInfo { mac: mac(n), dbm, received: Some(received), inactive }
    }

    #[test]
    fn a_signal_counts_once_for_the_frames_it_was_measured_on() {
        let (mut news, every) = (News::default(), Duration::from_millis(100));
        let mut of = |stations: &[StationInfo]| -> Vec<i8> {
            news.of(stations, every).iter().map(|sample| sample.dbm).collect()
        };
        assert_eq!(of(&[heard(1, -60, 5, 30), heard(2, -80, 9, 5000)]), [-60]);
        assert_eq!(of(&[heard(1, -60, 5, 130), heard(2, -81, 10, 10)]), [-81], "1 was silent");
        // Our own frames were acknowledged: active, and nothing measured.
        assert_eq!(of(&[heard(1, -60, 5, 0)]), []);
        // Counters wrap, and stations come back with a smaller one.
        assert_eq!(of(&[heard(1, -59, 3, 0), heard(2, -82, 2, 900)]), [-59]);
        let silent = |inactive| StationInfo { received: None, inactive, ..heard(3, -70, 0, 0) };
        assert_eq!(of(&[silent(None)]), [-70], "a driver that counts nothing");
        assert_eq!(of(&[silent(Some(Duration::from_millis(101)))]), []);
    }

    /// Answers as written, then never again.
    struct Script {
        stations: VecDeque<Result<Vec<StationInfo>, DeviceError>>,
        surveys: Result<Option<Survey>, ()>,
        asked: Arc<Mutex<u32>>,
    }

    impl Driver for Script {
        fn interface(&self) -> &str {
            "wlan7"
        }

        async fn stations(&mut self) -> Result<Vec<StationInfo>, DeviceError> {
            match self.stations.pop_front() {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        }

        async fn survey(&mut self) -> Result<Option<Survey>, DeviceError> {
            *self.asked.lock().unwrap() += 1;
            self.surveys.map_err(|()| DeviceError::new("wlan7", OPERATION, Problem::Busy))
        }
    }

    /// Runs the polling over these answers and says what it handed over.
    fn polled(
        stations: Vec<Result<Vec<StationInfo>, DeviceError>>,
        surveys: Result<Option<Survey>, ()>,
    ) -> (Vec<Sample>, super::super::SignalCounters, u32) {
        told(stations, surveys, |script, to| watch(script, to, Duration::from_millis(1)))
    }

    /// The same of this polling.
    fn told<P: Future<Output = ()>>(
        stations: Vec<Result<Vec<StationInfo>, DeviceError>>,
        surveys: Result<Option<Survey>, ()>,
        polling: impl FnOnce(Script, Reports) -> P,
    ) -> (Vec<Sample>, super::super::SignalCounters, u32) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (reports, asked) = (Reports::default(), Arc::new(Mutex::new(0)));
        let script = Script { stations: stations.into(), surveys, asked: Arc::clone(&asked) };
        let to = reports.clone();
        runtime.block_on(async {
            let ends = Duration::from_millis(1500);
            let polling = polling(script, to);
            assert!(tokio::time::timeout(ends, polling).await.is_err(), "it goes on");
        });
        let mut cx = Context::from_waker(Waker::noop());
        let mut samples = Vec::new();
        while let Poll::Ready(sample) = reports.poll(&mut cx) {
            samples.push(sample);
        }
        let asked = *asked.lock().unwrap();
        (samples, reports.counters(), asked)
    }

    #[test]
    fn polling_goes_on_after_a_failure_and_keeps_the_survey() {
        let failed = DeviceError::new("wlan7", OPERATION, Problem::NoSuchInterface);
        let stations = vec![
            Ok(vec![heard(1, -60, 1, 0)]),
            Ok(vec![heard(1, -60, 1, 0)]),
            Err(failed),
            Ok(vec![heard(1, -62, 2, 0), heard(2, -70, 1, 0)]),
        ];
        let survey = Survey { active_ms: 500, busy_ms: 100 };
        let (samples, counters, _) = polled(stations, Ok(Some(survey)));
        let sample = |n, dbm| Sample { from: mac(n), dbm };
        assert_eq!(samples, [sample(1, -60), sample(1, -62), sample(2, -70)]);
        assert_eq!((counters.samples, counters.failures), (3, 1));
        assert_eq!((counters.channel_active_ms, counters.channel_busy_ms), (500, 100));
    }

    #[test]
    fn who_wants_to_know_the_channel_alone_asks_for_no_stations_and_goes_on_after_a_failure() {
        let stations = || vec![Ok(vec![heard(1, -60, 1, 0)])];
        let survey = Survey { active_ms: 500, busy_ms: 100 };
        let (samples, counters, asked) = told(stations(), Ok(Some(survey)), watch_channel);
        assert_eq!((samples, asked), (vec![], 2), "at once, and after a second");
        assert_eq!((counters.channel_active_ms, counters.channel_busy_ms), (500, 100));
        let (_, counters, asked) = told(stations(), Err(()), watch_channel);
        assert_eq!((counters.failures, asked), (2, 2));
    }

    #[test]
    fn a_driver_without_a_survey_is_asked_for_it_once() {
        let stations = (0..9).map(|n| Ok(vec![heard(1, -60, n, 0)])).collect();
        let (_, counters, asked) = polled(stations, Err(()));
        assert_eq!((counters.samples, counters.failures, asked), (9, 0, 1));
    }
}
