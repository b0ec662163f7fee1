-- A ledger of version 8, as a coordinator left it that was killed in the middle of run r1: iterdump of its file.
BEGIN TRANSACTION;
CREATE TABLE clocks (
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    last_ns INTEGER NOT NULL, newest_ns INTEGER NOT NULL DEFAULT 0,  -- of the newest line
    PRIMARY KEY (run, kind)
) WITHOUT ROWID;
INSERT INTO "clocks" VALUES('r1','event',5000000002,1000000000);
INSERT INTO "clocks" VALUES('r1','range',4000000000,0);
INSERT INTO "clocks" VALUES('r1','status',4000000001,0);
INSERT INTO "clocks" VALUES('r1','tick',5000000000,0);
CREATE TABLE deletions (
    run TEXT PRIMARY KEY              -- is in `runs` no more, and is being removed from the other tables
) WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    body BLOB NOT NULL                -- an Event, packed
);
INSERT INTO "events" VALUES(1,'r1',X'84A26174CB0000000000000000A474797065A57374617465A474657874B27468652072756E2069732070656E64696E67A57374617465A770656E64696E67');
INSERT INTO "events" VALUES(2,'r1',X'84A26174CB3FF0000000000000A474797065A57374617465A474657874B27468652072756E2069732072756E6E696E67A57374617465A772756E6E696E67');
INSERT INTO "events" VALUES(3,'r1',X'89A26174CB4014000000000000A474797065AD6C656173655F65787069726564A474657874D94074686520726571756573747320313020746F203139206172652074616B656E206261636B2066726F6D20776F726B65722077313A20776F726B6572206C6F7374A6776F726B6572A27731A56C65617365B572312E3030303030303030322E3064663161303464A573746172740AA473746F7014A872657175657374730AA6726561736F6EAB776F726B65725F6C6F7374');
INSERT INTO "events" VALUES(4,'r1',X'84A26174CB4010000000000000A474797065AD776F726B65725F6A6F696E6564A474657874B1776F726B65722077312069732068657265A6776F726B6572A27731');
INSERT INTO "events" VALUES(5,'r1',X'83A26174CB4014000000000000A474797065A9636C6F636B5F736574A474657874D93074686520636F6F7264696E61746F72277320636C6F636B207761732073657420666F727761726420627920332E302073');
CREATE TABLE flags (
    run TEXT NOT NULL,
    flag TEXT NOT NULL,
    requests INTEGER NOT NULL,
    worst REAL NOT NULL,
    PRIMARY KEY (run, flag)
) WITHOUT ROWID;
INSERT INTO "flags" VALUES('r1','clock_set',20,3.0);
INSERT INTO "flags" VALUES('r1','worker_lost',10,0.0);
CREATE TABLE histories (
    run TEXT PRIMARY KEY,
    moments INTEGER NOT NULL DEFAULT 0,     -- about how many are kept; counted when they are thinned out
    events INTEGER NOT NULL DEFAULT 0,      -- how many there were, also those that were too many to be kept
    step_s INTEGER NOT NULL DEFAULT 0,      -- moments are being merged along such steps; 0 when they are not
    merged_to REAL NOT NULL DEFAULT 0,      -- those that end by then have been
    merge_until REAL NOT NULL DEFAULT 0     -- and those by then will be
) WITHOUT ROWID;
INSERT INTO "histories" VALUES('r1',2,5,0,0.0,0.0);
CREATE TABLE leases (
    id TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    cut_at REAL NOT NULL,
    execution TEXT,
    worker TEXT,
    boot TEXT,
    closed_at REAL,
    covered INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO "leases" VALUES('r1.000000001.bb5be58a','r1',0,10,'reported','',2.0,'e-e58a','w1','b1',4.0,10);
INSERT INTO "leases" VALUES('r1.000000002.0df1a04d','r1',10,20,'expired','worker_lost',2.0,'e-a04d','w1','b1',5.0,0);
INSERT INTO "leases" VALUES('r1.000000003.97182070','r1',20,30,'active','',2.0,NULL,NULL,NULL,NULL,0);
INSERT INTO "leases" VALUES('r1.000000004.653527c6','r1',10,20,'active','',5.0,NULL,NULL,NULL,NULL,0);
CREATE TABLE moments (
    run TEXT NOT NULL,
    at REAL NOT NULL,
    body BLOB NOT NULL,               -- a Moment, packed
    PRIMARY KEY (run, at)
) WITHOUT ROWID;
INSERT INTO "moments" VALUES('r1',4.0,X'789C558FB14EC33010869B66434820B5132FC0CAC2D0894E6C48BC81E5D847881ADB91EF0C74CFC013F40110B59BA52F5265E1011898184162EC8013240837FDDFFF4BF7DFBD8E264F9C76F3E3513F0141182D7177F1F163AC913841B04EEB42E70D17C2384D200F7C091C414E43055AC6E8F2591A0D475B0B089A1827A60CD2B82934BB298BFC76D0716FEC022C261BE3481805B81A275DB0CD9604C82C0828EE409EAE4B9EB378CA7576F5F2D9EC43192FD1625987CC890510AEDAB44EDAF43D690FDF128F4E3187EDC99757B133AAB4F68A3F746AF2E8ABF333A6FEDEF2D5ACE7F9F4976743DE74FCCFE9770DF81B4CEA7101');
INSERT INTO "moments" VALUES('r1',5.0,X'789C558FB14EC3301086EB664348546A275E809585A1134C6C48BC81E5D847881ADB91EF0C74CFC013F40110759AA52F5265E1011898184162EC8013402D37FDDFFF4BF7DFBD0EC64F82361793413F3582B446E1E6FCE3C758220982DA7963729335424AEB0D813A0805080435A94B302A4697CFCA1A385A3B4030C405716D91864D6EF84D9167B7B163F4DB716FDD0C1CB295F524AD065C0C5917ACD33901720712F23B5027CB42643C9E729D5EBD7C36DBBA88971839AFEAD4CB19102EDAA4626DF2CEDAC33716D06BEEB13DFE0A3A76469554418B874E8D1F437976CAF5EEAD504E7BFEFB3BF2749F571DFF73FA5D7BFC0D51AE7105');
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    line TEXT NOT NULL,
    is_late INTEGER                   -- into which stream it goes; decided when it is first sent
, told_ns INTEGER);
INSERT INTO "outbox" VALUES(1,'r1','event',0,'{"type":"state","text":"the run is pending","state":"pending"}',0,0);
INSERT INTO "outbox" VALUES(2,'r1','event',1000000000,'{"type":"state","text":"the run is running","state":"running"}',0,1000000000);
INSERT INTO "outbox" VALUES(3,'r1','range',4000000000,'{"lease":"r1.000000001.bb5be58a","worker":"w1","start":0,"stop":10,"requests":10,"ok":9,"unexpected_status":1,"timeout":0,"connect_error":0,"disconnected":0,"protocol_error":0,"bytes_received":130,"mean_ms":1.045,"p50_ms":1.04,"p90_ms":1.08,"p99_ms":1.09,"p99_9_ms":1.09,"max_ms":1.09,"started_at":3.0,"seconds":1.0,"cpu_s":0.5,"peak_rss_mb":80.0,"max_lag_s":0.0,"busy_share":0.0}',NULL,NULL);
INSERT INTO "outbox" VALUES(4,'r1','status',4000000000,'{"worker":"w1","status":"200","requests":9}',NULL,NULL);
INSERT INTO "outbox" VALUES(5,'r1','status',4000000001,'{"worker":"w1","status":"503","requests":1}',NULL,NULL);
INSERT INTO "outbox" VALUES(6,'r1','event',5000000000,'{"type":"lease_expired","text":"the requests 10 to 19 are taken back from worker w1: worker lost","worker":"w1","lease":"r1.000000002.0df1a04d","start":10,"stop":20,"requests":10,"reason":"worker_lost"}',NULL,NULL);
INSERT INTO "outbox" VALUES(7,'r1','tick',4000000000,'{"state":"running","requests":3}',NULL,NULL);
INSERT INTO "outbox" VALUES(8,'r1','tick',5000000000,'{"state":"running","requests":3}',NULL,NULL);
INSERT INTO "outbox" VALUES(9,'r1','event',5000000001,'{"type":"worker_joined","text":"worker w1 is here","worker":"w1"}',NULL,NULL);
INSERT INTO "outbox" VALUES(10,'r1','event',5000000002,'{"type":"clock_set","text":"the coordinator''s clock was set forward by 3.0 s"}',NULL,NULL);
CREATE TABLE outbox_size (lines INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO "outbox_size" VALUES(10,1799);
CREATE TABLE processes (
    run TEXT NOT NULL,
    process TEXT NOT NULL,
    peak_mb REAL NOT NULL,
    PRIMARY KEY (run, process)
) WITHOUT ROWID;
INSERT INTO "processes" VALUES('r1','coordinator',60.0);
CREATE TABLE runs (
    run TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    requests INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    queued_at REAL NOT NULL,          -- when it was submitted or resumed: its place in the queue
    created_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL,
    active_s REAL NOT NULL DEFAULT 0, -- closed windows of activity
    active_since REAL,                -- begin of the open window
    windows INTEGER NOT NULL DEFAULT 0,
    last_report_at REAL,
    leases_cut INTEGER NOT NULL DEFAULT 0,
    resent_at_most INTEGER NOT NULL DEFAULT 0,
    served INTEGER,
    outcomes TEXT NOT NULL,
    statuses TEXT NOT NULL DEFAULT '{}',
    bytes_received INTEGER NOT NULL DEFAULT 0,
    sum_us INTEGER NOT NULL DEFAULT 0,
    min_us INTEGER NOT NULL DEFAULT 0,
    max_us INTEGER NOT NULL DEFAULT 0,
    histogram BLOB,
    bytes_received_high INTEGER NOT NULL DEFAULT 0,  -- what is beyond 62 bits, here and in sum_us
    sum_us_high INTEGER NOT NULL DEFAULT 0,
    is_broken INTEGER NOT NULL DEFAULT 0             -- its account did not balance
, is_published INTEGER NOT NULL DEFAULT 0, owes_summary INTEGER NOT NULL DEFAULT 0, engine TEXT NOT NULL DEFAULT 'aiohttp', target TEXT NOT NULL DEFAULT '');
INSERT INTO "runs" VALUES('r1','shop',100,'running','',0.0,0.0,3.0,NULL,0.0,3.0,1,4.0,4,20,NULL,'[9, 1, 0, 0, 0, 0]','{"200": 9, "503": 1}',130,10450,1000,1090,X'1C84931400000026789C9369992CCCC0C020CA0001CC509A11445C9BBC84C1FE0344E03C3F9320060400CD440627',0,0,0,1,0,'aiohttp','http://shop.test');
CREATE TABLE servers (
    run TEXT NOT NULL,
    store TEXT NOT NULL,              -- where a delay server of the run counts
    seen_at REAL NOT NULL,
    PRIMARY KEY (run, store)
) WITHOUT ROWID;
INSERT INTO "servers" VALUES('r1','store-1',4.0);
CREATE TABLE slices (
    run TEXT NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, start)
) WITHOUT ROWID;
INSERT INTO "slices" VALUES('r1',0,10,'accounted');
INSERT INTO "slices" VALUES('r1',10,20,'leased');
INSERT INTO "slices" VALUES('r1',20,30,'leased');
INSERT INTO "slices" VALUES('r1',30,100,'pending');
CREATE TABLE specs (
    run TEXT PRIMARY KEY,
    spec TEXT NOT NULL                -- apart from what changes with each report: it may be large
);
INSERT INTO "specs" VALUES('r1','{"requests":100,"urls":["http://shop.test/{i}"],"method":"GET","headers":[],"body":null,"concurrency":10,"workers":null,"engine":"aiohttp","timeout_s":10.0,"grace_s":null,"expect_status":["200"],"range_size":null,"servers":null,"delay":null,"seed":null,"name":"shop","cacert":null,"cert":null,"key":null,"insecure":false,"proxy":null,"max_redirects":0,"cookies":false}');
CREATE TABLE strays (
    lease TEXT NOT NULL,
    execution TEXT NOT NULL,
    PRIMARY KEY (lease, execution)
) WITHOUT ROWID;
INSERT INTO "strays" VALUES('r1.000000002.0df1a04d','e-other');
CREATE TABLE workers (
    run TEXT NOT NULL,
    worker TEXT NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0,
    cpu_s REAL NOT NULL DEFAULT 0,
    peak_rss_mb REAL NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, worker)
) WITHOUT ROWID;
INSERT INTO "workers" VALUES('r1','w1',10,0.5,80.0,1);
CREATE INDEX pending_slices ON slices (run, start) WHERE state = 'pending';
CREATE INDEX active_leases ON leases (run) WHERE state = 'active';
CREATE INDEX events_of_runs ON events (run);
CREATE INDEX expired_leases ON leases (run) WHERE state = 'expired';
CREATE INDEX live_runs ON runs (queued_at, state, run)
    WHERE state IN ('running', 'pausing', 'cancelling', 'pending');
CREATE INDEX owing_runs ON runs (run) WHERE owes_summary = 1;
CREATE INDEX losable_lines ON outbox (id) WHERE kind IN ('tick', 'latency', 'worker', 'coverage');
CREATE INDEX listed_runs ON runs (created_at);
CREATE INDEX outbox_of_runs ON outbox (run);
PRAGMA user_version = 8;
COMMIT;
