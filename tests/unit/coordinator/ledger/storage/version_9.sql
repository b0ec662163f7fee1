-- A ledger of version 9 as a coordinator left it that was killed in the middle of its runs: iterdump of its file.
BEGIN TRANSACTION;
CREATE TABLE deletions (
    run TEXT PRIMARY KEY              -- is in `runs` no more, and is being removed from the other tables
) WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    body BLOB NOT NULL                -- an Event, packed
);
INSERT INTO "events" VALUES(1,'done',X'84A26174CB0000000000000000A474797065A57374617465A474657874B27468652072756E2069732070656E64696E67A57374617465A770656E64696E67');
INSERT INTO "events" VALUES(2,'done',X'84A26174CB3FF0000000000000A474797065A57374617465A474657874B27468652072756E2069732072756E6E696E67A57374617465A772756E6E696E67');
INSERT INTO "events" VALUES(3,'done',X'84A26174CB4010000000000000A474797065A57374617465A474657874B47468652072756E20697320636F6D706C65746564A57374617465A9636F6D706C65746564');
INSERT INTO "events" VALUES(4,'pausing',X'84A26174CB0000000000000000A474797065A57374617465A474657874B27468652072756E2069732070656E64696E67A57374617465A770656E64696E67');
INSERT INTO "events" VALUES(5,'pausing',X'84A26174CB3FF0000000000000A474797065A57374617465A474657874B27468652072756E2069732072756E6E696E67A57374617465A772756E6E696E67');
INSERT INTO "events" VALUES(6,'pausing',X'84A26174CB4012000000000000A474797065A57374617465A474657874B27468652072756E2069732070617573696E67A57374617465A770617573696E67');
INSERT INTO "events" VALUES(7,'cancelling',X'84A26174CB0000000000000000A474797065A57374617465A474657874B27468652072756E2069732070656E64696E67A57374617465A770656E64696E67');
INSERT INTO "events" VALUES(8,'cancelling',X'84A26174CB3FF0000000000000A474797065A57374617465A474657874B27468652072756E2069732072756E6E696E67A57374617465A772756E6E696E67');
INSERT INTO "events" VALUES(9,'cancelling',X'84A26174CB4012000000000000A474797065A57374617465A474657874B57468652072756E2069732063616E63656C6C696E67A57374617465AA63616E63656C6C696E67');
INSERT INTO "events" VALUES(10,'r1',X'84A26174CB0000000000000000A474797065A57374617465A474657874B27468652072756E2069732070656E64696E67A57374617465A770656E64696E67');
INSERT INTO "events" VALUES(11,'r1',X'84A26174CB3FF0000000000000A474797065A57374617465A474657874B27468652072756E2069732072756E6E696E67A57374617465A772756E6E696E67');
INSERT INTO "events" VALUES(12,'r1',X'89A26174CB4010CCCCCCCCCCCDA474797065AD6C656173655F65787069726564A474657874D93D726571756573747320313020746F20313920776572652074616B656E206261636B2066726F6D20776F726B65722077323A20776F726B6572206C6F7374A6776F726B6572A27732A56C65617365B572312E3030303030303030322E3962333338343263A573746172740AA473746F7014A872657175657374730AA6726561736F6EAB776F726B65725F6C6F7374');
INSERT INTO "events" VALUES(13,'r1',X'88A26174CB4011333333333333A474797065AD6C656173655F65787069726564A474657874D92E726571756573747320343020746F20343920776572652074616B656E206261636B3A206E6F7420636C61696D6564A56C65617365B572312E3030303030303030352E3231666132333331A5737461727428A473746F7032A872657175657374730AA6726561736F6EAB6E6F745F636C61696D6564');
INSERT INTO "events" VALUES(14,'r1',X'88A26174CB401199999999999AA474797065AD6C656173655F65787069726564A474657874D92B726571756573747320353020746F20353920776572652074616B656E206261636B3A206E6F742073656E74A56C65617365B572312E3030303030303030362E6339643730303331A5737461727432A473746F703CA872657175657374730AA6726561736F6EA86E6F745F73656E74');
INSERT INTO "events" VALUES(15,'r1',X'84A26174CB4010000000000000A474797065AD776F726B65725F6A6F696E6564A474657874B0776F726B6572207731206A6F696E6564A6776F726B6572A27731');
CREATE TABLE flags (
    run TEXT NOT NULL,
    flag TEXT NOT NULL,
    requests INTEGER NOT NULL,
    worst REAL NOT NULL,
    PRIMARY KEY (run, flag)
) WITHOUT ROWID;
INSERT INTO "flags" VALUES('r1','worker_lost',10,0.0);
CREATE TABLE histories (
    run TEXT PRIMARY KEY,
    samples INTEGER NOT NULL DEFAULT 0,     -- about how many are kept; counted when they are thinned out
    events INTEGER NOT NULL DEFAULT 0,      -- how many there were, also those that were too many to be kept
    step_s INTEGER NOT NULL DEFAULT 0,      -- samples are being merged along such steps; 0 when they are not
    merged_to REAL NOT NULL DEFAULT 0,      -- those that end by then have been
    merge_until REAL NOT NULL DEFAULT 0     -- and those by then will be
) WITHOUT ROWID;
INSERT INTO "histories" VALUES('cancelling',0,3,0,0.0,0.0);
INSERT INTO "histories" VALUES('done',0,3,0,0.0,0.0);
INSERT INTO "histories" VALUES('pausing',0,3,0,0.0,0.0);
INSERT INTO "histories" VALUES('r1',1,6,0,0.0,0.0);
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
    incarnation TEXT,
    closed_at REAL,
    covered INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO "leases" VALUES('cancelling.000000001.b097dd43','cancelling',0,10,'active','',2.0,'e-w1','w1','b-w1',NULL,0);
INSERT INTO "leases" VALUES('done.000000001.b9f1aa8c','done',0,20,'reported','',2.0,'e-w1','w1','b-w1',4.0,20);
INSERT INTO "leases" VALUES('pausing.000000001.7df546e9','pausing',0,10,'reported','',2.0,'e-w1','w1','b-w1',4.0,10);
INSERT INTO "leases" VALUES('pausing.000000002.db21b186','pausing',10,30,'active','',2.0,'e-w1','w1','b-w1',NULL,0);
INSERT INTO "leases" VALUES('r1.000000001.b67b8dee','r1',0,10,'reported','',2.0,'e-w1','w1','b-w1',4.0,8);
INSERT INTO "leases" VALUES('r1.000000002.9b33842c','r1',10,20,'expired','worker_lost',2.0,'e-w2','w2','b-w2',4.2,0);
INSERT INTO "leases" VALUES('r1.000000003.aae1aa22','r1',20,30,'active','',2.0,'e-w1','w1','b-w1',NULL,0);
INSERT INTO "leases" VALUES('r1.000000004.26de5e31','r1',30,40,'active','',2.0,'e-w1','w1','b-w1',NULL,0);
INSERT INTO "leases" VALUES('r1.000000005.21fa2331','r1',40,50,'expired','not_claimed',2.0,NULL,NULL,NULL,4.3,0);
INSERT INTO "leases" VALUES('r1.000000006.c9d70031','r1',50,60,'expired','not_sent',2.0,NULL,NULL,NULL,4.4,0);
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    line TEXT NOT NULL,
    is_late INTEGER,                  -- into which stream it goes; decided when it is first sent
    sent_ns INTEGER                   -- its time by the wall clock, decided then as well
);
INSERT INTO "outbox" VALUES(1,'done','event',0,'{"type":"state","text":"the run is pending","state":"pending"}',NULL,NULL);
INSERT INTO "outbox" VALUES(2,'done','event',1000000000,'{"type":"state","text":"the run is running","state":"running"}',NULL,NULL);
INSERT INTO "outbox" VALUES(3,'done','range',4000000000,'{"lease":"done.000000001.b9f1aa8c","worker":"w1","start":0,"stop":20,"requests":20,"ok":19,"unexpected_status":1,"timeout":0,"connect_error":0,"disconnected":0,"protocol_error":0,"bytes_received":260,"mean_ms":1.095,"p50_ms":1.09,"p90_ms":1.17,"p99_ms":1.19,"p99_9_ms":1.19,"max_ms":1.19,"started_at":3.0,"seconds":1.0,"cpu_s":0.5,"peak_rss_mb":80.0,"max_lag_s":0.0,"busy_share":0.0}',NULL,NULL);
INSERT INTO "outbox" VALUES(4,'done','status',4000000000,'{"worker":"w1","status":"200","requests":19}',NULL,NULL);
INSERT INTO "outbox" VALUES(5,'done','status',4000000001,'{"worker":"w1","status":"503","requests":1}',NULL,NULL);
INSERT INTO "outbox" VALUES(6,'done','event',4000000000,'{"type":"state","text":"the run is completed","state":"completed"}',NULL,NULL);
INSERT INTO "outbox" VALUES(7,'pausing','event',0,'{"type":"state","text":"the run is pending","state":"pending"}',NULL,NULL);
INSERT INTO "outbox" VALUES(8,'pausing','event',1000000000,'{"type":"state","text":"the run is running","state":"running"}',NULL,NULL);
INSERT INTO "outbox" VALUES(9,'pausing','range',4000000000,'{"lease":"pausing.000000001.7df546e9","worker":"w1","start":0,"stop":10,"requests":10,"ok":9,"unexpected_status":1,"timeout":0,"connect_error":0,"disconnected":0,"protocol_error":0,"bytes_received":130,"mean_ms":1.045,"p50_ms":1.04,"p90_ms":1.08,"p99_ms":1.09,"p99_9_ms":1.09,"max_ms":1.09,"started_at":3.0,"seconds":1.0,"cpu_s":0.5,"peak_rss_mb":80.0,"max_lag_s":0.0,"busy_share":0.0}',NULL,NULL);
INSERT INTO "outbox" VALUES(10,'pausing','status',4000000000,'{"worker":"w1","status":"200","requests":9}',NULL,NULL);
INSERT INTO "outbox" VALUES(11,'pausing','status',4000000001,'{"worker":"w1","status":"503","requests":1}',NULL,NULL);
INSERT INTO "outbox" VALUES(12,'pausing','event',4500000000,'{"type":"state","text":"the run is pausing","state":"pausing"}',NULL,NULL);
INSERT INTO "outbox" VALUES(13,'cancelling','event',0,'{"type":"state","text":"the run is pending","state":"pending"}',NULL,NULL);
INSERT INTO "outbox" VALUES(14,'cancelling','event',1000000000,'{"type":"state","text":"the run is running","state":"running"}',NULL,NULL);
INSERT INTO "outbox" VALUES(15,'cancelling','event',4500000000,'{"type":"state","text":"the run is cancelling","state":"cancelling"}',NULL,NULL);
INSERT INTO "outbox" VALUES(16,'r1','event',0,'{"type":"state","text":"the run is pending","state":"pending"}',NULL,NULL);
INSERT INTO "outbox" VALUES(17,'r1','event',1000000000,'{"type":"state","text":"the run is running","state":"running"}',NULL,NULL);
INSERT INTO "outbox" VALUES(18,'r1','range',4000000000,'{"lease":"r1.000000001.b67b8dee","worker":"w1","start":0,"stop":10,"requests":8,"ok":7,"unexpected_status":1,"timeout":0,"connect_error":0,"disconnected":0,"protocol_error":0,"bytes_received":104,"mean_ms":1.035,"p50_ms":1.03,"p90_ms":1.06,"p99_ms":1.07,"p99_9_ms":1.07,"max_ms":1.07,"started_at":3.0,"seconds":1.0,"cpu_s":0.5,"peak_rss_mb":80.0,"max_lag_s":0.0,"busy_share":0.0}',NULL,NULL);
INSERT INTO "outbox" VALUES(19,'r1','status',4000000000,'{"worker":"w1","status":"200","requests":7}',NULL,NULL);
INSERT INTO "outbox" VALUES(20,'r1','status',4000000001,'{"worker":"w1","status":"503","requests":1}',NULL,NULL);
INSERT INTO "outbox" VALUES(21,'r1','event',4200000000,'{"type":"lease_expired","text":"requests 10 to 19 were taken back from worker w2: worker lost","worker":"w2","lease":"r1.000000002.9b33842c","start":10,"stop":20,"requests":10,"reason":"worker_lost"}',NULL,NULL);
INSERT INTO "outbox" VALUES(22,'r1','event',4300000000,'{"type":"lease_expired","text":"requests 40 to 49 were taken back: not claimed","lease":"r1.000000005.21fa2331","start":40,"stop":50,"requests":10,"reason":"not_claimed"}',NULL,NULL);
INSERT INTO "outbox" VALUES(23,'r1','event',4400000000,'{"type":"lease_expired","text":"requests 50 to 59 were taken back: not sent","lease":"r1.000000006.c9d70031","start":50,"stop":60,"requests":10,"reason":"not_sent"}',NULL,NULL);
INSERT INTO "outbox" VALUES(24,'r1','tick',4000000000,'{"x":1}',NULL,NULL);
INSERT INTO "outbox" VALUES(25,'r1','event',4400000001,'{"type":"worker_joined","text":"worker w1 joined","worker":"w1"}',NULL,NULL);
CREATE TABLE outbox_size (lines INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO "outbox_size" VALUES(25,4702);
CREATE TABLE processes (
    run TEXT NOT NULL,
    process TEXT NOT NULL,
    peak_mb REAL NOT NULL,
    PRIMARY KEY (run, process)
) WITHOUT ROWID;
CREATE TABLE runs (
    run TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    requests INTEGER NOT NULL,
    engine TEXT NOT NULL DEFAULT 'aiohttp',          -- what a list says of the spec
    target TEXT NOT NULL DEFAULT '',                 -- and this: scheme, host and port of the first URL
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    queued_at REAL NOT NULL,                         -- when it was submitted or last resumed
    created_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL,
    active_s REAL NOT NULL DEFAULT 0,                -- closed windows of activity
    active_since REAL,                               -- begin of the open window
    windows INTEGER NOT NULL DEFAULT 0,
    last_report_at REAL,
    leases_cut INTEGER NOT NULL DEFAULT 0,
    resent_at_most INTEGER NOT NULL DEFAULT 0,
    served INTEGER,
    outcomes TEXT NOT NULL,
    statuses TEXT NOT NULL DEFAULT '{}',
    bytes_received INTEGER NOT NULL DEFAULT 0,       -- the lower 62 bits, as of sum_us
    bytes_received_high INTEGER NOT NULL DEFAULT 0,  -- what is beyond them
    sum_us INTEGER NOT NULL DEFAULT 0,
    sum_us_high INTEGER NOT NULL DEFAULT 0,
    min_us INTEGER NOT NULL DEFAULT 0,
    max_us INTEGER NOT NULL DEFAULT 0,
    histogram BLOB,
    is_broken INTEGER NOT NULL DEFAULT 0,            -- its account did not balance
    is_published INTEGER NOT NULL DEFAULT 0,         -- its lines go to the outbox
    owes_summary INTEGER NOT NULL DEFAULT 0          -- it is at rest without a summary
);
INSERT INTO "runs" VALUES('done','shop',20,'aiohttp','http://shop.test','completed','',0.0,0.0,3.0,4.0,1.0,NULL,1,4.0,1,0,NULL,'[19, 1, 0, 0, 0, 0]','{"200": 19, "503": 1}',260,0,21900,0,1000,1190,X'1C84931400000026789C9369992CCCC0C0A0C90001CC509A11445C9BBC84C1FE0344E03C3F9320511000563D06F9',0,1,1);
INSERT INTO "runs" VALUES('pausing','shop',100,'aiohttp','http://shop.test','pausing','',0.0,0.0,3.0,NULL,0.0,3.0,1,4.0,2,0,NULL,'[9, 1, 0, 0, 0, 0]','{"200": 9, "503": 1}',130,0,10450,0,1000,1090,X'1C84931400000026789C9369992CCCC0C020CA0001CC509A11445C9BBC84C1FE0344E03C3F9320060400CD440627',0,1,0);
INSERT INTO "runs" VALUES('cancelling','shop',100,'aiohttp','http://shop.test','cancelling','',0.0,0.0,3.0,NULL,0.0,3.0,1,NULL,1,0,NULL,'[0, 0, 0, 0, 0, 0]','{}',0,0,0,0,0,0,NULL,0,1,0);
INSERT INTO "runs" VALUES('r1','shop',100,'aiohttp','http://shop.test','running','',0.0,0.0,3.0,NULL,0.0,3.0,1,4.0,6,32,NULL,'[7, 1, 0, 0, 0, 0]','{"200": 7, "503": 1}',104,0,8280,0,1000,1070,X'1C84931400000026789C9369992CCCC0C020C80001CC509A11445C9BBC84C1FE0344E03C3F93200A0400B40A05FD',0,1,0);
CREATE TABLE samples (
    run TEXT NOT NULL,
    at REAL NOT NULL,
    body BLOB NOT NULL,               -- a Sample, packed
    PRIMARY KEY (run, at)
) WITHOUT ROWID;
INSERT INTO "samples" VALUES('r1',4.0,X'789C5D8E314E033110451DAA94142938060D452A28B9C568624F9655D6F6E21993A4E70054390082F5A6812BD0EF1D380347C0EB2402659A6759FAFFFD6F75F58A32DC5DAA7289497B6778B8FD397C7C047A8CC4C2205EB0317BD4DA472764A65D43C86466A925676A57DDBF19EF689A134C4E0005AC67513D6AA99F087850C7FBF451B4B7C4C01E96187647F7DA8715059EEC6B07CBA6AE1EF2AED9F98CEC22A3FA804210DABFD2FE54BABB9894C4622BD9104853B61BF5DE60F56F436A7281D3DBE7B4887A45C22F1D470B915567B3BE10372393257460F9AB6B6FAE0F9C9F381FD98F2CAF12C9FC05823C7CAB');
CREATE TABLE servers (
    run TEXT NOT NULL,
    store TEXT NOT NULL,              -- where a delay server of the run counts
    seen_at REAL NOT NULL,
    PRIMARY KEY (run, store)
) WITHOUT ROWID;
CREATE TABLE slices (
    run TEXT NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, start)
) WITHOUT ROWID;
INSERT INTO "slices" VALUES('cancelling',0,10,'leased');
INSERT INTO "slices" VALUES('cancelling',10,100,'pending');
INSERT INTO "slices" VALUES('done',0,20,'accounted');
INSERT INTO "slices" VALUES('pausing',0,10,'accounted');
INSERT INTO "slices" VALUES('pausing',10,30,'leased');
INSERT INTO "slices" VALUES('pausing',30,100,'pending');
INSERT INTO "slices" VALUES('r1',0,3,'accounted');
INSERT INTO "slices" VALUES('r1',3,4,'pending');
INSERT INTO "slices" VALUES('r1',4,7,'accounted');
INSERT INTO "slices" VALUES('r1',7,8,'pending');
INSERT INTO "slices" VALUES('r1',8,10,'accounted');
INSERT INTO "slices" VALUES('r1',10,20,'pending');
INSERT INTO "slices" VALUES('r1',20,30,'leased');
INSERT INTO "slices" VALUES('r1',30,40,'leased');
INSERT INTO "slices" VALUES('r1',40,100,'pending');
CREATE TABLE specs (
    run TEXT PRIMARY KEY,
    spec TEXT NOT NULL                -- apart from what changes with each report: it may be large
);
INSERT INTO "specs" VALUES('done','{"requests":20,"urls":["http://shop.test/{i}"],"method":"GET","headers":[],"body":null,"concurrency":10,"workers":null,"engine":"aiohttp","timeout_s":10.0,"grace_s":null,"expect_status":["200"],"range_size":null,"servers":null,"delay":null,"seed":null,"name":"shop","cacert":null,"cert":null,"key":null,"insecure":false,"proxy":null,"max_redirects":0,"cookies":false}');
INSERT INTO "specs" VALUES('pausing','{"requests":100,"urls":["http://shop.test/{i}"],"method":"GET","headers":[],"body":null,"concurrency":10,"workers":null,"engine":"aiohttp","timeout_s":10.0,"grace_s":null,"expect_status":["200"],"range_size":null,"servers":null,"delay":null,"seed":null,"name":"shop","cacert":null,"cert":null,"key":null,"insecure":false,"proxy":null,"max_redirects":0,"cookies":false}');
INSERT INTO "specs" VALUES('cancelling','{"requests":100,"urls":["http://shop.test/{i}"],"method":"GET","headers":[],"body":null,"concurrency":10,"workers":null,"engine":"aiohttp","timeout_s":10.0,"grace_s":null,"expect_status":["200"],"range_size":null,"servers":null,"delay":null,"seed":null,"name":"shop","cacert":null,"cert":null,"key":null,"insecure":false,"proxy":null,"max_redirects":0,"cookies":false}');
INSERT INTO "specs" VALUES('r1','{"requests":100,"urls":["http://shop.test/{i}"],"method":"GET","headers":[],"body":null,"concurrency":10,"workers":null,"engine":"aiohttp","timeout_s":10.0,"grace_s":null,"expect_status":["200"],"range_size":null,"servers":null,"delay":null,"seed":null,"name":"shop","cacert":null,"cert":null,"key":null,"insecure":false,"proxy":null,"max_redirects":0,"cookies":false}');
CREATE TABLE strays (
    lease TEXT NOT NULL,
    execution TEXT NOT NULL,
    PRIMARY KEY (lease, execution)
) WITHOUT ROWID;
INSERT INTO "strays" VALUES('r1.000000003.aae1aa22','e-w3');
CREATE TABLE streams (
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    last_ns INTEGER NOT NULL,               -- of the newest line
    newest_ns INTEGER NOT NULL DEFAULT 0,   -- of the newest line that was sent, by the wall clock
    PRIMARY KEY (run, kind)
) WITHOUT ROWID;
INSERT INTO "streams" VALUES('cancelling','event',4500000000,0);
INSERT INTO "streams" VALUES('done','event',4000000000,0);
INSERT INTO "streams" VALUES('done','range',4000000000,0);
INSERT INTO "streams" VALUES('done','status',4000000001,0);
INSERT INTO "streams" VALUES('pausing','event',4500000000,0);
INSERT INTO "streams" VALUES('pausing','range',4000000000,0);
INSERT INTO "streams" VALUES('pausing','status',4000000001,0);
INSERT INTO "streams" VALUES('r1','event',4400000001,0);
INSERT INTO "streams" VALUES('r1','range',4000000000,0);
INSERT INTO "streams" VALUES('r1','status',4000000001,0);
INSERT INTO "streams" VALUES('r1','tick',4000000000,0);
CREATE TABLE workers (
    run TEXT NOT NULL,
    worker TEXT NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0,
    cpu_s REAL NOT NULL DEFAULT 0,
    peak_rss_mb REAL NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, worker)
) WITHOUT ROWID;
INSERT INTO "workers" VALUES('done','w1',20,0.5,80.0,0);
INSERT INTO "workers" VALUES('pausing','w1',10,0.5,80.0,0);
INSERT INTO "workers" VALUES('r1','w1',8,0.5,80.0,0);
INSERT INTO "workers" VALUES('r1','w2',0,0.0,0.0,1);
CREATE INDEX live_runs ON runs (queued_at, state, run)
    WHERE state IN ('running', 'pausing', 'cancelling', 'pending');
CREATE INDEX owing_runs ON runs (run) WHERE owes_summary = 1;
CREATE INDEX listed_runs ON runs (created_at);
CREATE INDEX pending_slices ON slices (run, start) WHERE state = 'pending';
CREATE INDEX active_leases ON leases (run) WHERE state = 'active';
CREATE INDEX expired_leases ON leases (run) WHERE state = 'expired';
CREATE INDEX events_of_runs ON events (run);
CREATE INDEX losable_lines ON outbox (id) WHERE kind IN ('tick', 'latency', 'worker', 'coverage');
CREATE INDEX outbox_of_runs ON outbox (run);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('outbox',25);
PRAGMA user_version = 9;
COMMIT;
