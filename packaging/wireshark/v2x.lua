-- Wireshark dissector for the frames of `obu` and `rsu`: docs/wire-format.md says what they mean.
--
-- Copy it into the folder that Help > About > Folders calls "Personal Lua Plugins", or:
--
--     tshark -X lua_script:v2x.lua -i wlan0
--
-- A message is judged as the daemons judge it. What they would refuse is marked `v2x.malformed`, with
-- the reason, and shown as far as it can be read. A frame that only the capture cut short (its snap
-- length) is marked `v2x.cut`. node_lib/tests/wireshark.rs holds all this against the daemons' parser.
--
-- Bits are taken with `bitfield` and arithmetic: Lua 5.2 to 5.4, which Wireshark has used, share no
-- other way.

local v2x = Proto("v2x", "V2X network node")

local VERSION = 2
local PREFIX_LEN = 4
-- A shorter frame is padded: 60 bytes without its check sequence, of which 14 are the header.
local BODY_LEN_MIN = 46
local ETHERNET_HEADER_LEN = 14
local MTU_MIN = 120
local HOPS_MAX = 32
local NO_ROUTE = 255
local RELAYS_MAX = 15
local RSUS_MAX = 64
local PATH_MAX = 33
local CLIENTS_MAX = 230
local VLAN_MAX = 4094
local LATITUDE_E7_MAX = 900000000
local LONGITUDE_E7_MAX = 1800000000
local AGE_MS_MAX = 5000
local FRAGMENTS_MAX = 8
local FRAGMENTED_MIN = 36
-- Parts of one message that come later than this belong to another.
local REASSEMBLY_S = 0.2
-- The number of the default EtherType is the port of the link over UDP multicast.
local UDP_PORT = 0x88b5
local NOBODY = "00:00:00:00:00:00"

v2x.prefs.ethertype = Pref.range(
    "EtherTypes", "0x88b5",
    "EtherTypes of the nodes' frames (--ethertype), such as 0x88b5 or 0x88b5,0x88b6", 65535)

--- Fields -----------------------------------------------------------------------------------------

local TYPES = {
    [1] = "Heartbeat", [2] = "HeartbeatReply", [3] = "Probe", [4] = "ProbeAnswer",
    [5] = "Withdrawal", [6] = "Announcement", [7] = "AnnouncementAck", [8] = "ToUpstream",
    [9] = "ToDownstream", [10] = "Bundle", [11] = "Echo", [12] = "Fragment",
}
local BUNDLE, TO_UPSTREAM, TO_DOWNSTREAM = 10, 8, 9

local STATUSES = {
    [0] = "accepted", [1] = "stale epoch", [2] = "send all", [3] = "known",
}

local VERDICTS = {
    [0] = "question", [1] = "reached", [2] = "client of the last on the path", [3] = "hop limit",
    [4] = "no route", [5] = "unknown",
}

local field = {}

local function add(kind, name, ...)
    field[name] = ProtoField[kind]("v2x." .. name, ...)
end

local function number(name, title, bits, unit)
    if unit then
        add("uint" .. bits, name, title, base.UNIT_STRING, { " " .. unit })
    else
        add("uint" .. bits, name, title, base.DEC)
    end
end

add("uint8", "version", "Version", base.DEC, nil, 0xf0)
add("uint8", "type", "Type", base.DEC, TYPES, 0x0f)
add("uint8", "flags", "Flags", base.HEX)
add("uint8", "flags.key_slot", "Key slot", base.DEC, nil, 0xc0)
add("uint8", "flags.children", "Children", base.DEC, nil, 0x0e)
add("uint8", "flags.stride", "Stride", base.DEC, nil, 0x30)
add("bool", "flags.goodbye", "Goodbye", 8, nil, 0x01)
add("bool", "flags.standby", "Standby", 8, nil, 0x02)
add("bool", "flags.acknowledge", "Acknowledge", 8, nil, 0x04)
add("bool", "flags.answer", "Answer", 8, nil, 0x08)
add("bool", "flags.flood", "Flood", 8, nil, 0x08)
add("bool", "flags.again", "Again", 8, nil, 0x10)
add("uint8", "flags.priority", "User priority", base.DEC, nil, 0x07)
number("length", "Length", 16, "bytes")
-- Node ids look like the MAC they are by default, so that names of stations are names of nodes.
add("ether", "rsu", "RSU")
add("ether", "sender", "Sender")
add("ether", "origin", "Origin")
add("ether", "via", "Via")
add("ether", "asker", "Asker")
add("ether", "asked", "Asked")
add("ether", "destination", "Destination")
add("ether", "source", "Source")
number("boot", "Boot", 32)
number("seq", "Sequence", 32)
add("uint16", "pace", "Pace", base.DEC, nil, 0xc000)
add("uint16", "interval_ms", "Interval", base.DEC, nil, 0x3fff)
number("obus", "OBUs attached", 16)
number("sender_boot", "Boot of the sender", 32)
number("hello", "Hello", 32)
number("cost", "Cost", 16, "/64 transmissions")
number("mtu", "MTU", 16, "bytes")
number("hop_limit", "Hop limit", 8, "relays")
number("hops", "Hops", 8)
add("int32", "latitude_e7", "Latitude", base.DEC)
add("int32", "longitude_e7", "Longitude", base.DEC)
number("accuracy_dm", "Accuracy", 16, "x 0.1 m")
number("age_ms", "Age of the position", 16, "ms")
number("epoch", "Epoch", 32)
add("uint32", "digest", "Digest", base.HEX)
number("clients", "Clients", 16)
number("within_ds", "Next word within", 16, "x 0.1 s")
number("answers", "Answers heartbeat", 32)
number("held_100us", "Held for", 16, "x 0.1 ms")
number("at_risk_10ms", "Sent down in vain within", 8, "x 10 ms")
add("uint8", "reserved", "Reserved", base.HEX)
add("uint32", "nonce", "Nonce", base.HEX)
number("count", "Count", 8)
number("part", "Part", 8)
number("parts", "Parts", 8)
add("uint8", "status", "Status", base.DEC, STATUSES)
add("ether", "target", "Target")
add("uint8", "verdict", "Verdict", base.DEC, VERDICTS)
number("at", "Place on the path", 8)
add("ether", "path", "On the path")
number("relays", "Relays yet to pass", 8)
add("uint16", "label", "Label", base.HEX)
add("bytes", "label_padding", "Padding of the labels")
number("taken_at", "Taken at heartbeat", 32)
add("none", "group", "Clients of one VLAN")
number("group.vlan", "VLAN", 16)
number("group.count", "Clients", 16)
add("ether", "group.mac", "Client")
number("fragment.id", "Id of the message", 32)
number("fragment.total", "Length of the message", 16, "bytes")
number("fragment.index", "Index", 8)
number("fragment.count", "Count", 8)
add("bytes", "fragment.part", "Part of the message")
add("framenum", "fragment.frame", "Part in frame", base.NONE)
add("framenum", "reassembled_in", "Put together in frame", base.NONE)
add("bytes", "padding", "Padding")

local fields = {}
for _, one in pairs(field) do
    fields[#fields + 1] = one
end
v2x.fields = fields

local malformed = ProtoExpert.new(
    "v2x.malformed", "Malformed message", expert.group.MALFORMED, expert.severity.ERROR)
local cut = ProtoExpert.new(
    "v2x.cut", "Cut short by the capture", expert.group.PROTOCOL, expert.severity.NOTE)
v2x.experts = { malformed, cut }

--- What is common to all messages -----------------------------------------------------------------

-- One message while it is taken apart: its bytes, its place in the tree, and what was read.
local Message = {}
Message.__index = Message

function Message:refuse(text)
    self.is_refused = true
    self.item:add_proto_expert_info(malformed, self.name .. ": " .. text)
end

-- Bytes that are there: captured, and before the end that the message says it has.
function Message:has(offset, len)
    return offset + len <= self.stop
end

-- An id or address as people write it. That of nobody is NOBODY.
local function address(range)
    local hex = range:bytes():tohex(true):gsub("(..)", "%1:")
    return hex:sub(1, -2)
end

-- Shows a row of the field table and remembers its value. Nothing once the bytes are used up.
function Message:row(offset, len, name, as)
    if not self:has(offset, len) then
        return
    end
    local range = self.tvb(offset, len)
    local item = self.tree:add(field[as or name], range)
    self.value[name] = len == 6 and address(range) or range:uint()
    return item, self.value[name]
end

-- A row with words behind it, made from its value.
function Message:explained(offset, len, name, explain)
    local item, value = self:row(offset, len, name)
    if item then
        item:append_text(" (" .. explain(value) .. ")")
    end
end

-- A row with the id of a node, which must be somebody's.
function Message:node(offset, name)
    local _, id = self:row(offset, 6, name)
    if id == NOBODY then
        self:refuse(name .. " is zero where a node must be named")
    end
end

-- A row whose value is at least and at most this.
function Message:ranged(offset, len, name, least, most, as)
    local item, value = self:row(offset, len, name, as)
    if value and (value < least or value > most) then
        self:refuse(("%s %d where it is %d to %d"):format(name, value, least, most))
    end
    return item, value
end

-- A row with 10^-7 degrees, signed, of which there are so many either way.
function Message:degrees(offset, name, most)
    if not self:has(offset, 4) then
        return
    end
    local range = self.tvb(offset, 4)
    local value = range:int()
    self.tree:add(field[name], range):append_text((" (%.7f degrees)"):format(value / 1e7))
    self.value[name] = value
    if value < -most or value > most then
        self:refuse(("%s %d where it is at most %d either way"):format(name, value, most))
    end
end

function Message:reserved(offset)
    self:ranged(offset, 1, "reserved", 0, 0)
end

function Message:hops(offset)
    self:ranged(offset, 1, "hops", 0, HOPS_MAX)
end

function Message:mtu(offset)
    self:ranged(offset, 2, "mtu", MTU_MIN, 65535)
end

-- The interval field: a pace, and the time from one number to the next.
function Message:pace_and_interval(offset)
    if not self:has(offset, 2) then
        return
    end
    local range = self.tvb(offset, 2)
    local pace, interval = range:bitfield(0, 2), range:bitfield(2, 14)
    self.value.pace, self.value.interval_ms = pace, interval
    self.tree:add(field.pace, range):append_text(
        (" (a heartbeat each %d ms)"):format(interval * 2 ^ pace))
    self.tree:add(field.interval_ms, range)
end

function Message:interval(offset)
    self:pace_and_interval(offset)
    local every = self.value.interval_ms and self.value.interval_ms * 2 ^ self.value.pace
    if every and (every < 1 or every > 10000) then
        self:refuse(("interval_ms %d where it is 1 to 10000"):format(every))
    end
end

function Message:within(offset)
    local item, value = self:ranged(offset, 2, "within_ds", 1, 65535)
    if item then
        item:append_text((" (%.1f s)"):format(value / 10))
    end
end

function Message:cost(offset)
    self:explained(offset, 2, "cost", function(cost)
        return cost == 65535 and "1024 or worse" or ("%.2f transmissions"):format(cost / 64)
    end)
end

-- The upstream of an OBU, which is not the OBU.
function Message:upstream(offset)
    self:node(offset, "via")
    if self.value.via and self.value.via == self.value.origin then
        self:refuse("via is the OBU itself")
    end
end

function Message:part_of(offset)
    self:row(offset, 1, "part")
    self:row(offset + 1, 1, "parts")
    if self.value.parts and self.value.part >= self.value.parts then
        self:refuse("part is not below parts")
    end
end

-- No hops and no upstream has the RSU itself, and nobody else.
function Message:hops_from_rsu()
    local value = self.value
    if not value.hops then
        return
    end
    local is_rsu = value.sender == value.rsu
    if is_rsu ~= (value.hops == 0) then
        self:refuse("hops is 0 at the RSU, and nowhere else")
    end
    if is_rsu ~= (value.via == NOBODY) then
        self:refuse("via names nobody at the RSU, and an upstream everywhere else")
    end
end

-- The labels of a way, one less than its relays.
function Message:labels(offset)
    local relays = self.value.relays
    if not relays or relays > RELAYS_MAX then
        return 0
    end
    local count = math.max(relays - 1, 0)
    for index = 0, count - 1 do
        self:row(offset + 2 * index, 2, "label")
    end
    return count
end

-- The message is as long as what it says about itself.
function Message:needs(length)
    if self.length ~= length and not self.is_refused then
        self:refuse(("length %d where %d are needed"):format(self.length, length))
    end
end

-- Hands the frame of a client to the dissector of Ethernet.
function Message:payload(offset)
    if self.length < offset + ETHERNET_HEADER_LEN then
        self:refuse(("length %d where at least %d are needed"):format(
            self.length, offset + ETHERNET_HEADER_LEN))
    elseif self:has(offset, ETHERNET_HEADER_LEN) then
        -- With less than its header the other dissector would throw, and ours with it.
        local inner = self.tvb(offset, self.stop - offset):tvb()
        self.pinfo.cols.info:fence()
        Dissector.get("eth_withoutfcs"):call(inner, self.pinfo, self.root)
    end
end

--- The messages -----------------------------------------------------------------------------------

-- By type code: length of the fixed part, whether that is all, the flags, and how it goes on.
local KINDS = {}

KINDS[1] = {
    length = 48, flags = { "children", "stride" },
    read = function(m)
        m:node(4, "rsu")
        m:row(10, 4, "boot")
        m:row(14, 4, "seq")
        m:interval(18)
        m:row(20, 2, "obus")
        m:node(22, "sender")
        m:row(28, 4, "sender_boot")
        m:row(32, 4, "hello")
        m:row(36, 6, "via")
        m:cost(42)
        m:mtu(44)
        m:row(46, 1, "hop_limit")
        m:hops(47)
        m:hops_from_rsu()
        if m.length == 48 then
            return
        end
        m:needs(60)
        m:degrees(48, "latitude_e7", LATITUDE_E7_MAX)
        m:degrees(52, "longitude_e7", LONGITUDE_E7_MAX)
        m:explained(56, 2, "accuracy_dm", function(dm)
            return dm == 65535 and "not known" or ("%.1f m"):format(dm / 10)
        end)
        m:ranged(58, 2, "age_ms", 0, AGE_MS_MAX)
    end,
    info = function(v)
        return ("RSU %s seq %d, %d hops%s"):format(
            v.rsu, v.seq, v.hops, v.age_ms and ", position" or "")
    end,
}

KINDS[2] = {
    length = 52, is_fixed = true, flags = { "goodbye", "standby", "acknowledge" },
    read = function(m)
        m:node(4, "rsu")
        m:node(10, "origin")
        m:row(16, 4, "boot")
        m:row(20, 4, "seq")
        m:row(24, 4, "epoch")
        m:upstream(28)
        m:row(34, 4, "digest")
        m:row(38, 2, "clients")
        m:within(40)
        m:row(42, 4, "answers")
        m:explained(46, 2, "held_100us", function(held)
            return ("%.1f ms%s"):format(held / 10, held == 65535 and " or more" or "")
        end)
        m:mtu(48)
        m:row(50, 1, "at_risk_10ms")
        m:hops(51)
    end,
    info = function(v)
        return ("OBU %s to RSU %s via %s"):format(v.origin, v.rsu, v.via)
    end,
}

KINDS[3] = {
    length = 30, is_fixed = true, flags = {},
    read = function(m)
        m:node(4, "sender")
        m:row(10, 4, "sender_boot")
        m:row(14, 4, "nonce")
        m:row(18, 6, "rsu")
        m:row(24, 6, "asked")
    end,
    info = function(v)
        if v.rsu == NOBODY then
            return "any RSU?"
        end
        return ("RSU %s?"):format(v.rsu)
    end,
}

KINDS[4] = {
    length = 52, is_fixed = true, flags = { "stride" },
    read = function(m)
        m:node(4, "sender")
        m:row(10, 4, "sender_boot")
        m:node(14, "asker")
        m:row(20, 4, "nonce")
        m:mtu(24)
        -- Whether there is a route, which decides what may follow, the last byte tells. Where the
        -- capture ends before that, nothing is judged.
        local is_told = m:has(51, 1)
        local has_route = is_told and m.tvb(51, 1):uint() ~= NO_ROUTE
        m:row(26, 6, "rsu")
        m:row(32, 4, "boot")
        m:row(36, 4, "seq")
        if has_route then
            m:interval(40)
        else
            m:pace_and_interval(40)
        end
        m:row(42, 6, "via")
        m:cost(48)
        m:row(50, 1, "hop_limit")
        if has_route then
            m:hops(51)
            m:hops_from_rsu()
            if m.value.rsu == NOBODY then
                m:refuse("rsu is zero where a route is told")
            end
        end
        if has_route or not is_told then
            return
        end
        m:explained(51, 1, "hops", function()
            return "no route"
        end)
        local value = m.value
        for _, name in ipairs({ "boot", "seq", "interval_ms", "pace", "cost", "hop_limit", "stride" }) do
            if value[name] ~= 0 then
                m:refuse(("%s %d where it is zero without a route"):format(name, value[name]))
            end
        end
        if value.via ~= NOBODY then
            m:refuse("via names somebody without a route")
        end
    end,
    info = function(v)
        if v.hops == NO_ROUTE then
            return ("%s has no route"):format(v.sender)
        end
        return ("RSU %s seq %d, %d hops"):format(v.rsu, v.seq, v.hops)
    end,
}

KINDS[5] = {
    length = 16, flags = { "goodbye" },
    read = function(m)
        m:node(4, "sender")
        m:row(10, 4, "sender_boot")
        m:row(14, 1, "count")
        m:reserved(15)
        local count = m.value.count
        if not count then
            return
        end
        if m.value.goodbye ~= (count == 0) or count > RSUS_MAX then
            m:refuse(("count %d where it is 1 to 64, with goodbye 0"):format(count))
        end
        m:needs(16 + 6 * count)
        for index = 0, count - 1 do
            m:node(16 + 6 * index, "rsu")
        end
    end,
    info = function(v)
        return ("%s %s"):format(v.sender, v.count == 0 and "leaves" or "lost its routes")
    end,
}

KINDS[11] = {
    length = 24, flags = { "answer" },
    read = function(m)
        m:row(4, 4, "nonce")
        m:node(8, "target")
        m:node(14, "rsu")
        m:ranged(20, 1, "hop_limit", 0, HOPS_MAX)
        local least, most = 0, 0
        if m.value.answer then
            least, most = 1, 5
        end
        m:ranged(21, 1, "verdict", least, most)
        m:row(22, 1, "at")
        m:ranged(23, 1, "count", 1, PATH_MAX)
        local value = m.value
        if not value.count then
            return
        end
        m:needs(24 + 6 * value.count)
        least, most = 1, value.count
        if value.answer then
            least, most = 0, value.count - 2
        end
        if value.at < least or value.at > most then
            m:refuse(("at %d where it is %d to %d"):format(value.at, least, most))
        end
        for index = 0, value.count - 1 do
            m:node(24 + 6 * index, "path")
        end
    end,
    info = function(v)
        return ("%s: %s"):format(v.target, VERDICTS[v.verdict] or "?")
    end,
}

-- The clients of one VLAN. Returns where the next group begins, and how many clients these are.
local function group(m, offset)
    if offset + 4 > m.length then
        m:refuse("no room for a group before the end of the message")
        return
    elseif not m:has(offset, 4) then
        return
    end
    local count = m.tvb(offset + 2, 2):uint()
    local stop = offset + 4 + 6 * count
    if stop > m.length then
        m:refuse(("a group of %d clients ends at %d"):format(count, stop))
    end
    local tree = m.tree
    m.tree = tree:add(field.group, m.tvb(offset, math.min(stop, m.stop) - offset))
    m:ranged(offset, 2, "group.vlan", 0, VLAN_MAX)
    m:ranged(offset + 2, 2, "group.count", 1, CLIENTS_MAX)
    -- No more than there are bytes for: the count is not to be believed.
    for at = offset + 4, math.min(stop, m.stop) - 6, 6 do
        local _, mac = m:row(at, 6, "group.mac")
        if mac == NOBODY or m.tvb(at, 1):bitfield(7, 1) == 1 then
            m:refuse("a client is no unicast address")
        end
    end
    m.tree = tree
    return stop, count
end

KINDS[6] = {
    length = 46, flags = { "standby" },
    read = function(m)
        m:node(4, "rsu")
        m:node(10, "origin")
        m:row(16, 4, "boot")
        m:row(20, 4, "seq")
        m:row(24, 4, "epoch")
        m:upstream(28)
        m:row(34, 4, "digest")
        m:part_of(38)
        m:within(40)
        m:mtu(42)
        m:row(44, 1, "at_risk_10ms")
        m:hops(45)
        local offset, count, clients = 46, 0, 0
        while offset and offset < m.length do
            offset, count = group(m, offset)
            clients = clients + (count or 0)
        end
        if clients > CLIENTS_MAX then
            m:refuse(("%d clients where there are at most %d"):format(clients, CLIENTS_MAX))
        end
        m.value.clients = clients
    end,
    info = function(v)
        return ("OBU %s to RSU %s, %d clients, epoch %d"):format(
            v.origin, v.rsu, v.clients, v.epoch)
    end,
}

KINDS[7] = {
    length = 32, flags = {},
    read = function(m)
        m:node(4, "destination")
        m:node(10, "rsu")
        m:row(16, 4, "epoch")
        m:row(20, 4, "seq")
        m:row(24, 4, "digest")
        m:part_of(28)
        m:ranged(30, 1, "status", 0, 3)
        m:ranged(31, 1, "relays", 0, RELAYS_MAX)
        if m.value.relays then
            m:needs(32 + 2 * m:labels(32))
        end
    end,
    info = function(v)
        return ("RSU %s to OBU %s: %s"):format(
            v.rsu, v.destination, STATUSES[v.status] or "unknown status")
    end,
}

local function data_info(v)
    local to = v.flood and "all" or v.destination
    return ("%s to %s seq %d"):format(v.source, to, v.seq)
end

KINDS[TO_UPSTREAM] = {
    length = 22, flags = { "again", "priority" }, info = data_info,
    read = function(m)
        m:node(4, "destination")
        m:node(10, "source")
        m:row(16, 1, "hop_limit")
        m:row(17, 1, "boot")
        m:row(18, 4, "seq")
    end,
    -- Comes after the columns are set, as who takes the payload writes on.
    rest = function(m)
        m:payload(22)
    end,
}

KINDS[TO_DOWNSTREAM] = {
    length = 22, flags = { "flood", "priority" }, info = data_info,
    read = function(m)
        if m.value.flood then
            m:row(4, 6, "destination")
        else
            m:node(4, "destination")
        end
        m:node(10, "source")
        if m.value.flood then
            m:row(16, 1, "hop_limit")
        else
            m:ranged(16, 1, "relays", 0, RELAYS_MAX)
        end
        m:row(17, 1, "boot")
        m:row(18, 4, "seq")
    end,
    rest = function(m)
        if m.value.flood then
            m:row(22, 4, "taken_at")
            m:payload(26)
            return
        end
        local labels = m:labels(22)
        local offset = 22 + 2 * labels
        if labels % 2 == 1 then
            if m:has(offset, 2) then
                m.tree:add(field.label_padding, m.tvb(offset, 2))
                if m.tvb(offset, 2):uint() ~= 0 then
                    m:refuse("the padding of the labels is not zero")
                end
            end
            offset = offset + 2
        end
        m:payload(offset)
    end,
}

-- Takes a bundle apart. What is behind a message that cannot be read cannot be found.
local dissect

KINDS[BUNDLE] = {
    length = 4, flags = {},
    read = function(m)
        m.value.messages = 0
    end,
    info = function()
        return "data messages"
    end,
    rest = function(m)
        local offset = PREFIX_LEN
        while offset < m.length do
            if offset + PREFIX_LEN > m.length then
                m:refuse(("%d bytes behind the last message"):format(m.length - offset))
                return
            elseif not m:has(offset, PREFIX_LEN) then
                return
            end
            local version = m.tvb(offset, 1):bitfield(0, 4)
            local code = m.tvb(offset, 1):bitfield(4, 4)
            local length = m.tvb(offset + 2, 2):uint()
            if version ~= VERSION or code ~= TO_UPSTREAM and code ~= TO_DOWNSTREAM then
                m:refuse("a message in it is no data message of this version")
                return
            elseif length < KINDS[code].length or offset + length > m.length then
                m:refuse(("a message in it has length %d"):format(length))
                return
            end
            local have = math.min(length, m.stop - offset)
            dissect(m.tvb(offset, have):tvb(), length, m.pinfo, m.item, m.root)
            offset = offset + length
        end
    end,
}

--- Fragments --------------------------------------------------------------------------------------

-- Messages of which parts are missing, by neighbours and id.
local pending = {}
-- By number of a frame: what it completed.
local completed = {}
-- By number of a frame with a part: in which frame the message was completed.
local completed_in = {}

function v2x.init()
    pending, completed, completed_in = {}, {}, {}
end

-- Keeps a part. With the last one the message is whole. Only in the first pass: that one goes in order.
local function keep(m, part)
    local value = m.value
    local number, now = m.pinfo.number, m.pinfo.abs_ts
    local key = ("%s %s %d"):format(
        tostring(m.pinfo.dl_src), tostring(m.pinfo.dl_dst), value["fragment.id"])
    local whole = pending[key]
    if not whole or now - whole.since > REASSEMBLY_S
        or whole.total ~= value["fragment.total"] or whole.count ~= value["fragment.count"] then
        whole = {
            since = now, total = value["fragment.total"], count = value["fragment.count"],
            parts = {}, frames = {},
        }
        pending[key] = whole
    end
    local index = value["fragment.index"]
    if whole.parts[index] then
        return
    end
    whole.parts[index] = part
    whole.frames[#whole.frames + 1] = number
    if #whole.frames < whole.count then
        return
    end
    pending[key] = nil
    local bytes = ByteArray.new()
    for at = 0, whole.count - 1 do
        bytes:append(whole.parts[at])
    end
    completed[number] = { bytes = bytes, frames = whole.frames }
    for _, frame in ipairs(whole.frames) do
        completed_in[frame] = number
    end
end

KINDS[12] = {
    length = 12, flags = { "priority" },
    read = function(m)
        m:row(4, 4, "fragment.id")
        m:ranged(8, 2, "fragment.total", FRAGMENTED_MIN, 65535)
        m:row(10, 1, "fragment.index")
        m:ranged(11, 1, "fragment.count", 2, FRAGMENTS_MAX)
    end,
    info = function(v)
        return ("%d of %d of message %d"):format(
            v["fragment.index"] + 1, v["fragment.count"], v["fragment.id"])
    end,
    rest = function(m)
        local value = m.value
        if m.stop > 12 then
            m.tree:add(field["fragment.part"], m.tvb(12, m.stop - 12))
        end
        local count, index = value["fragment.count"], value["fragment.index"]
        if m.is_refused or not count then
            return
        elseif index >= count then
            m:refuse("index is not below count")
            return
        end
        local total = value["fragment.total"]
        local size = math.ceil(total / count)
        local need = math.min(size, total - size * index)
        if need <= 0 then
            m:refuse("more parts than there are bytes for")
            return
        end
        m:needs(12 + need)
        if m.is_refused or not m:has(12, need) then
            return
        end
        if not m.pinfo.visited then
            keep(m, m.tvb(12, need):bytes())
        end
        local number = m.pinfo.number
        local whole = completed[number]
        if whole then
            for _, frame in ipairs(whole.frames) do
                m.tree:add(field["fragment.frame"], frame):set_generated()
            end
            local tvb = whole.bytes:tvb("Reassembled message")
            dissect(tvb, tvb:len(), m.pinfo, m.root, m.root)
        elseif completed_in[number] then
            m.tree:add(field.reassembled_in, completed_in[number]):set_generated()
        end
    end,
}

--- From the prefix on -----------------------------------------------------------------------------

-- Shows the flags; says whether there is one that the message does not have.
local function flags(m, kind)
    local byte = m.tvb(1, 1)
    local tree = m.tree:add(field.flags, byte)
    tree:add(field["flags.key_slot"], byte)
    local known = { key_slot = { 0, 2 } }
    local places = {
        children = { 4, 3 }, stride = { 2, 2 }, goodbye = { 7, 1 },
        standby = { 6, 1 }, acknowledge = { 5, 1 }, flood = { 4, 1 }, answer = { 4, 1 },
        again = { 3, 1 }, priority = { 5, 3 },
    }
    for _, name in ipairs(kind.flags) do
        local item = tree:add(field["flags." .. name], byte)
        local place = places[name]
        local value = byte:bitfield(place[1], place[2])
        if name == "stride" then
            item:append_text((" (one in %d of the heartbeats that the RSU sends)"):format(2 ^ value))
        end
        known[name] = place
        m.value[name] = place[2] == 1 and value == 1 or place[2] > 1 and value
    end
    local slot = byte:bitfield(0, 2)
    if slot ~= 0 then
        m:refuse(("security envelope with key slot %d where only 0 is known"):format(slot))
        return false
    end
    local unknown = byte:uint()
    for _, place in pairs(known) do
        unknown = unknown - byte:bitfield(place[1], place[2]) * 2 ^ (8 - place[1] - place[2])
    end
    if unknown ~= 0 then
        m:refuse(("unknown flags 0x%02x"):format(unknown))
    end
    if m.value.stride and m.value.stride > 2 then
        m:refuse("stride 3 where it is at most 2")
    end
    return true
end

-- Dissects one message. `reported` is how many bytes there were on the air, padding among them, and
-- the tvb holds as many or, where the capture cut the frame short, less.
dissect = function(tvb, reported, pinfo, tree, root)
    local have = tvb:len()
    local item = tree:add(v2x, tvb())
    local m = setmetatable({
        tvb = tvb, pinfo = pinfo, root = root, item = item, tree = item, value = {},
        name = "Message", stop = have,
    }, Message)
    local function is_short(need)
        if reported < need then
            m:refuse(("%d bytes where %d are needed"):format(reported, need))
        elseif have < need then
            item:add_proto_expert_info(cut, ("%d bytes of %d captured"):format(have, reported))
        end
        return have < need
    end
    if have < 1 then
        is_short(PREFIX_LEN)
        return
    end
    local first = tvb(0, 1)
    item:add(field.version, first)
    item:add(field.type, first)
    local version, code = first:bitfield(0, 4), first:bitfield(4, 4)
    if version ~= VERSION then
        m:refuse(("version %d where this dissector knows %d"):format(version, VERSION))
        return
    end
    local kind = KINDS[code]
    if not kind then
        m:refuse(("type %d where types are 1 to 12"):format(code))
        return
    end
    m.name = TYPES[code]
    item:append_text(", " .. m.name)
    pinfo.cols.info:append(m.name .. " ")
    if is_short(PREFIX_LEN) or not flags(m, kind) then
        return
    end
    m:row(2, 2, "length")
    m.length = m.value.length
    if m.length < kind.length or kind.is_fixed and m.length > kind.length then
        m:refuse(("length %d where the format has %d"):format(m.length, kind.length))
    elseif not is_short(m.length) and reported > m.length then
        if reported > BODY_LEN_MIN then
            m:refuse(("%d bytes behind a message of %d"):format(reported - m.length, m.length))
        end
        if have > m.length then
            item:add(field.padding, tvb(m.length, have - m.length))
        end
    end
    m.stop = math.min(have, m.length)
    item:set_len(m.stop)
    kind.read(m)
    if m:has(0, kind.length) then
        local info = kind.info(m.value)
        item:append_text(", " .. info)
        pinfo.cols.info:append(info .. " ")
        if kind.rest then
            kind.rest(m)
        end
    end
end

function v2x.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "V2X"
    pinfo.cols.info = ""
    dissect(tvb, tvb:reported_len(), pinfo, tree, tree)
end

--- Where they are found ---------------------------------------------------------------------------

local registered

local function register()
    local table = DissectorTable.get("ethertype")
    if registered then
        table:remove(registered, v2x)
    end
    registered = v2x.prefs.ethertype
    table:add(registered, v2x)
end

v2x.prefs_changed = register
register()
DissectorTable.get("udp.port"):add(UDP_PORT, Dissector.get("eth_withoutfcs"))
