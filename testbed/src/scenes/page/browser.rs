//! Headless Chromium, told what to do over its debugging pipe: messages in JSON, each ended by a
//! zero byte.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::arena::netns::Netns;
use crate::wait::wait_until;

/// A browser that says nothing for so long has died.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pipe is on descriptors 3 and 4.
const WITH_PIPE: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#;

/// A browser with one page.
pub(super) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    next: u64,
    /// What went wrong on the page: exceptions, and what its policy forbade.
    complaints: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts it in a namespace.
    pub(super) fn start(ns: &Netns, program: &str) -> Result<Self> {
        let profile = tempfile::tempdir()?;
        let mut command = Command::new("sh");
        command.args(["-c", WITH_PIPE, "sh", program, "--headless", "--remote-debugging-pipe"]);
        command.args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
        command.args(["--no-first-run", "--disable-extensions", "--hide-scrollbars"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = ns.run(|| Ok(command.spawn()?))?;
        let to = child.stdin.take().context("a pipe")?;
        let mut lines = BufReader::new(child.stdout.take().context("a pipe")?);
        let (said, from) = channel();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            // Nobody listens any more, or nobody speaks: either is the end.
            while matches!(lines.read_until(0, &mut line), Ok(1..)) {
                line.pop();
                let Ok(message) = serde_json::from_slice(&line) else { return };
                if said.send(message).is_err() {
                    return;
                }
                line.clear();
            }
        });
        let (session, complaints) = (None, Vec::new());
        let mut browser = Self { child, to, from, session, next: 1, complaints, _profile: profile };
        let page = browser.tell("Target.createTarget", json!({ "url": "about:blank" }));
        let page = page.with_context(|| format!("{program}: install it with .ci/setup page"))?;
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.tell("Target.attachToTarget", attach)?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.tell(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    fn tell(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.next;
        self.next += 1;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let (Some(session), Some(fields)) = (&self.session, message.as_object_mut()) {
            fields.insert("sessionId".to_owned(), json!(session));
        }
        let mut bytes = serde_json::to_vec(&message)?;
        bytes.push(0);
        self.to.write_all(&bytes)?;
        loop {
            let mut said = self.from.recv_timeout(PATIENCE).context("the browser is silent")?;
            if said["id"] == id {
                if !said["error"].is_null() {
                    bail!("{method}: {}", said["error"]);
                }
                return Ok(said["result"].take());
            }
            match said["method"].as_str() {
                Some("Runtime.exceptionThrown") => self.complaints.push(said.to_string()),
                Some("Log.entryAdded") if said["params"]["entry"]["level"] == "error" => {
                    self.complaints.push(said.to_string());
                }
                _ => {}
            }
        }
    }

    /// A window of this size, by day or by night.
    pub(super) fn window(&mut self, (width, height): (u32, u32), is_dark: bool) -> Result<()> {
        let is_phone = width < 600;
        let size = json!({
            "width": width, "height": height,
            "deviceScaleFactor": if is_phone { 2 } else { 1 }, "mobile": is_phone,
        });
        self.tell("Emulation.setDeviceMetricsOverride", size)?;
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.tell("Emulation.setEmulatedMedia", json!({ "features": features }))?;
        self.tell("Emulation.setTouchEmulationEnabled", json!({ "enabled": is_phone }))?;
        Ok(())
    }

    /// Goes to a page.
    pub(super) fn open(&mut self, url: &str) -> Result<()> {
        let went = self.tell("Page.navigate", json!({ "url": url }))?;
        match went["errorText"].as_str() {
            None => Ok(()),
            Some(error) => Err(anyhow!("{url}: {error}")),
        }
    }

    /// What an expression of the page's script is.
    pub(super) fn value(&mut self, expression: &str) -> Result<Value> {
        let params = json!({ "expression": expression, "returnByValue": true });
        let mut said = self.tell("Runtime.evaluate", params)?;
        if !said["exceptionDetails"].is_null() {
            bail!("{expression}: {}", said["exceptionDetails"]);
        }
        Ok(said["result"]["value"].take())
    }

    /// Waits until all of this can be read on the page.
    pub(super) fn shows(&mut self, wanted: &[&str]) -> Result<String> {
        let mut text = String::new();
        let mut missing = Vec::new();
        let seen = wait_until("the page", PATIENCE, || {
            text = self
                .value("document.body?.innerText ?? ''")?
                .as_str()
                .unwrap_or_default()
                .to_owned();
            missing = wanted.iter().filter(|wanted| !text.contains(**wanted)).collect();
            Ok(missing.is_empty().then_some(()))
        });
        seen.map_err(|error| anyhow!("{error}: it lacks {missing:?}:\n{text}"))?;
        Ok(text)
    }

    /// The middle of the first element that this selects, in the window.
    fn spot(&mut self, selector: &str) -> Result<[f64; 2]> {
        let spot = format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: \
             'center'}}); const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + \
             b.height / 2]; }})()"
        );
        Ok(serde_json::from_value(self.value(&spot)?)?)
    }

    /// Puts a finger on the first element that this selects, moves it by so many pixels to the
    /// right and down, and lifts it. How far the page was scrolled meanwhile.
    pub(super) fn swipe(&mut self, selector: &str, (right, down): (f64, f64)) -> Result<f64> {
        const STEPS: u32 = 8;
        let [x, y] = self.spot(selector)?;
        let before = self.scrolled()?;
        for step in 0..=STEPS {
            let part = f64::from(step) / f64::from(STEPS);
            let finger = json!({ "x": x + part * right, "y": y + part * down });
            let kind = if step == 0 { "touchStart" } else { "touchMove" };
            let event = json!({ "type": kind, "touchPoints": [finger] });
            self.tell("Input.dispatchTouchEvent", event)?;
            // The page draws in between, as under a finger.
            std::thread::sleep(Duration::from_millis(20));
        }
        // One that is lifted while it moves leaves the page going on for a while.
        std::thread::sleep(Duration::from_millis(200));
        let event = json!({ "type": "touchEnd", "touchPoints": [] });
        self.tell("Input.dispatchTouchEvent", event)?;
        Ok(self.scrolled()? - before)
    }

    fn scrolled(&mut self) -> Result<f64> {
        self.value("scrollY")?.as_f64().context("scrollY")
    }

    /// Clicks on the first element that this selects.
    /// News comes while the button is down.
    pub(super) fn click(&mut self, selector: &str) -> Result<()> {
        let spot = self.spot(selector)?;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": spot[0], "y": spot[1], "button": "left", "clickCount": 1,
            });
            self.tell("Input.dispatchMouseEvent", event)?;
            self.news()?;
        }
        Ok(())
    }

    /// Taps on the first element that this selects with a finger that trembles by so many pixels,
    /// and has news come meanwhile.
    pub(super) fn tap(&mut self, selector: &str, trembles: f64) -> Result<()> {
        let [x, y] = self.spot(selector)?;
        for (kind, by) in [("touchStart", 0.0), ("touchMove", trembles)] {
            let event = json!({ "type": kind, "touchPoints": [{ "x": x + by, "y": y }] });
            self.tell("Input.dispatchTouchEvent", event)?;
            std::thread::sleep(Duration::from_millis(40));
            self.news()?;
        }
        let event = json!({ "type": "touchEnd", "touchPoints": [] });
        self.tell("Input.dispatchTouchEvent", event)?;
        Ok(())
    }

    /// What the page does when it hears from its daemon. That comes at any moment.
    fn news(&mut self) -> Result<()> {
        self.value("refresh()").map(|_| ())
    }

    /// All of the page, as PNG.
    pub(super) fn picture(&mut self) -> Result<Vec<u8>> {
        self.value("scrollTo(0, 0)")?;
        let params = json!({ "captureBeyondViewport": true, "format": "png" });
        let said = self.tell("Page.captureScreenshot", params)?;
        let data = said["data"].as_str().context("a picture")?;
        Ok(data_encoding::BASE64.decode(data.as_bytes())?)
    }

    /// What went wrong on the page since it was last asked.
    pub(super) fn complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may be gone already; its children go with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
