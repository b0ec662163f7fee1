-- A ledger of version 10 as a coordinator left it that was killed in the middle of its runs: iterdump of its file.
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
INSERT INTO "events" VALUES(3,'r1',X'84A26174CB0000000000000000A474797065A57374617465A474657874B27468652072756E2069732070656E64696E67A57374617465A770656E64696E67');
INSERT INTO "events" VALUES(4,'r1',X'84A26174CB3FF0000000000000A474797065A57374617465A474657874B27468652072756E2069732072756E6E696E67A57374617465A772756E6E696E67');
INSERT INTO "events" VALUES(5,'done',X'84A26174CB4010000000000000A474797065A57374617465A474657874B47468652072756E20697320636F6D706C65746564A57374617465A9636F6D706C65746564');
INSERT INTO "events" VALUES(6,'r1',X'89A26174CB4018000000000000A474797065AD6C656173655F65787069726564A474657874D94838207265717565737473206265747765656E20313020616E6420313920776572652074616B656E206261636B2066726F6D20776F726B65722077323A20776F726B6572206C6F7374A6776F726B6572A27732A56C65617365B572312E3030303030303030322E3739626639343935A573746172740AA473746F7014A8726571756573747308A6726561736F6EAB776F726B65725F6C6F7374');
CREATE TABLE flags (
    run TEXT NOT NULL,
    flag TEXT NOT NULL,
    requests INTEGER NOT NULL,
    worst REAL NOT NULL,
    PRIMARY KEY (run, flag)
) WITHOUT ROWID;
INSERT INTO "flags" VALUES('r1','worker_lost',8,0.0);
CREATE TABLE histories (
    run TEXT PRIMARY KEY,
    samples INTEGER NOT NULL DEFAULT 0,     -- about how many are kept; counted when they are thinned out
    events INTEGER NOT NULL DEFAULT 0,      -- how many there were, also those that were too many to be kept
    step_s INTEGER NOT NULL DEFAULT 0,      -- samples are being merged along such steps; 0 when they are not
    merged_to REAL NOT NULL DEFAULT 0,      -- those that end by then have been
    merge_until REAL NOT NULL DEFAULT 0,    -- and those by then will be
    published_to REAL NOT NULL DEFAULT 0,   -- samples that end by then are in lines
    late_lines INTEGER NOT NULL DEFAULT 0   -- how many lines had counts that came after those of their second
) WITHOUT ROWID;
INSERT INTO "histories" VALUES('done',0,3,0,0.0,0.0,0.0,0);
INSERT INTO "histories" VALUES('r1',1,3,0,0.0,0.0,4.0,0);
CREATE TABLE lease_parts (
    lease TEXT NOT NULL,
    phase TEXT NOT NULL,
    name TEXT NOT NULL,
    run TEXT NOT NULL,
    requests INTEGER NOT NULL,
    body BLOB NOT NULL,                     -- a Part of an open lease, packed
    PRIMARY KEY (lease, phase, name)
) WITHOUT ROWID;
INSERT INTO "lease_parts" VALUES('r1.000000003.5aff07b2','','','r1',5,X'87A57068617365A0A46E616D65A0A86F7574636F6D657396020102000000A8737461747573657382A332303002A335303301AE62797465735F72656365697665644DA76C6174656E637984A76275636B65747396CD02BC01CD038401CD05DC01A673756D5F7573CD0C1CA66D696E5F7573CD02BCA66D61785F7573CD05DCAA7065725F7365636F6E648203960100010000000496010101000000');
CREATE TABLE lease_ranges (
    lease TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    ranges TEXT NOT NULL                    -- of a lease with several of them
) WITHOUT ROWID;
INSERT INTO "lease_ranges" VALUES('r1.000000005.8db23922','r1','[[4,5],[12,19]]');
CREATE TABLE leases (
    id TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    start INTEGER NOT NULL,                 -- its first index
    stop INTEGER NOT NULL,                  -- the index behind its last one
    length INTEGER NOT NULL,                -- less than what lies between them if it has several ranges
    worker TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    cut_at REAL NOT NULL,
    closed_at REAL,
    "limit" INTEGER NOT NULL,               -- all positions are places in its ranges
    "end" INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    in_flight TEXT NOT NULL DEFAULT '[]',
    covered INTEGER NOT NULL DEFAULT 0,
    sequence INTEGER NOT NULL DEFAULT 0,
    outcomes TEXT NOT NULL DEFAULT '[0,0,0,0,0,0]',
    figures TEXT NOT NULL DEFAULT '[]',
    resent INTEGER NOT NULL DEFAULT 0       -- how many of its requests may have been sent in vain
) WITHOUT ROWID;
INSERT INTO "leases" VALUES('done.000000001.a4b5dd23','done',0,10,10,'w1','b1','closed','',2.0,4.0,10,10,10,'[]',10,1,'[10,0,0,0,0,0]','[10,3.0,4.0,0.5,80.0,0.0,0.0,0,0,0.0,0.0,0.0]',0);
INSERT INTO "leases" VALUES('r1.000000001.c9830d6f','r1',0,10,10,'w1','b1','closed','',2.0,4.0,10,10,10,'[4]',9,1,'[9,0,0,0,0,0]','[10,3.0,4.0,0.5,80.0,0.0,0.0,0,0,0.0,0.0,0.0]',1);
INSERT INTO "leases" VALUES('r1.000000002.79bf9495','r1',10,20,10,'w2','b2','expired','worker_lost',2.0,6.0,10,10,3,'[2]',2,1,'[2,0,0,0,0,0]','[10,3.0,4.0,0.5,80.0,0.0,0.0,0,0,0.0,0.0,0.0]',8);
INSERT INTO "leases" VALUES('r1.000000003.5aff07b2','r1',20,40,20,'w1','b1','active','',2.0,NULL,20,20,7,'[1,5]',5,1,'[2,1,2,0,0,0]','[20,3.0,4.0,0.5,80.0,0.0,0.0,0,0,0.0,0.0,0.0]',0);
INSERT INTO "leases" VALUES('r1.000000004.184845e2','r1',40,60,20,'w1','b1','active','',2.0,NULL,20,20,0,'[]',0,0,'[0,0,0,0,0,0]','[0,0.0,0.0,0.0,0.0,0.0,0.0,0,0,0.0,0.0,0.0]',0);
INSERT INTO "leases" VALUES('r1.000000005.8db23922','r1',4,19,8,'w1','b1','active','',6.0,NULL,8,8,0,'[]',0,0,'[0,0,0,0,0,0]','[0,0.0,0.0,0.0,0.0,0.0,0.0,0,0,0.0,0.0,0.0]',0);
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
INSERT INTO "outbox" VALUES(3,'r1','event',0,'{"type":"state","text":"the run is pending","state":"pending"}',NULL,NULL);
INSERT INTO "outbox" VALUES(4,'r1','event',1000000000,'{"type":"state","text":"the run is running","state":"running"}',NULL,NULL);
INSERT INTO "outbox" VALUES(5,'done','range',4000000000,'{"lease":"done.000000001.a4b5dd23","worker":"w1","start":0,"stop":10,"requests":10,"ok":10,"unexpected_status":0,"timeout":0,"connect_error":0,"disconnected":0,"protocol_error":0,"bytes_received":130,"mean_ms":1.0,"p50_ms":1.0,"p90_ms":1.0,"p99_ms":1.0,"p99_9_ms":1.0,"max_ms":1.0,"started_at":3.0,"seconds":1.0,"cpu_s":0.5,"peak_rss_mb":80.0,"max_lag_s":0.0,"busy_share":0.0}',NULL,NULL);
INSERT INTO "outbox" VALUES(6,'done','status',4000000000,'{"worker":"w1","status":"200","requests":10}',NULL,NULL);
INSERT INTO "outbox" VALUES(7,'done','event',4000000000,'{"type":"state","text":"the run is completed","state":"completed"}',NULL,NULL);
INSERT INTO "outbox" VALUES(8,'r1','range',4000000000,'{"lease":"r1.000000001.c9830d6f","worker":"w1","start":0,"stop":10,"requests":9,"ok":9,"unexpected_status":0,"timeout":0,"connect_error":0,"disconnected":0,"protocol_error":0,"bytes_received":117,"mean_ms":1.0,"p50_ms":1.0,"p90_ms":1.0,"p99_ms":1.0,"p99_9_ms":1.0,"max_ms":1.0,"started_at":3.0,"seconds":1.0,"cpu_s":0.5,"peak_rss_mb":80.0,"max_lag_s":0.0,"busy_share":0.0}',NULL,NULL);
INSERT INTO "outbox" VALUES(9,'r1','status',4000000000,'{"worker":"w1","status":"200","requests":9}',NULL,NULL);
INSERT INTO "outbox" VALUES(10,'r1','range',6000000000,'{"lease":"r1.000000002.79bf9495","worker":"w2","start":10,"stop":13,"requests":2,"ok":2,"unexpected_status":0,"timeout":0,"connect_error":0,"disconnected":0,"protocol_error":0,"bytes_received":26,"mean_ms":1.0,"p50_ms":1.0,"p90_ms":1.0,"p99_ms":1.0,"p99_9_ms":1.0,"max_ms":1.0,"started_at":3.0,"seconds":1.0,"cpu_s":0.5,"peak_rss_mb":80.0,"max_lag_s":0.0,"busy_share":0.0}',NULL,NULL);
INSERT INTO "outbox" VALUES(11,'r1','status',6000000000,'{"worker":"w2","status":"200","requests":2}',NULL,NULL);
INSERT INTO "outbox" VALUES(12,'r1','event',6000000000,'{"type":"lease_expired","text":"8 requests between 10 and 19 were taken back from worker w2: worker lost","worker":"w2","lease":"r1.000000002.79bf9495","start":10,"stop":20,"requests":8,"reason":"worker_lost"}',NULL,NULL);
INSERT INTO "outbox" VALUES(13,'r1','tick',4000000000,'{"state":"running","seconds":1.0,"requests_total":100,"accounted":9,"leased":40,"pending":51,"done":12,"resent_at_most":0,"active_s":2.0,"requests_ended":11,"ok":10,"unexpected_status":0,"timeout":1,"connect_error":0,"disconnected":0,"protocol_error":0,"bytes_received":0,"rate_rps":11.0,"in_flight":4.0,"mean_ms":1.029333,"p50_ms":0.904,"p90_ms":1.488,"p99_ms":1.488,"p99_9_ms":1.488,"max_ms":1.488,"workers":2,"lag_s":0.0}',NULL,NULL);
CREATE TABLE outbox_size (lines INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO "outbox_size" VALUES(13,3237);
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
    last_checkpoint_at REAL,
    leases_cut INTEGER NOT NULL DEFAULT 0,
    resent_at_most INTEGER NOT NULL DEFAULT 0,
    served INTEGER,
    watched_s REAL NOT NULL DEFAULT 0,               -- seconds of workers in which the window could be full
    underfilled_s REAL NOT NULL DEFAULT 0,           -- those of them in which it was not
    drops_in_flight INTEGER NOT NULL DEFAULT 0,      -- it is cancelled, and its requests get no grace
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
INSERT INTO "runs" VALUES('done','shop',10,'aiohttp','','completed','',0.0,0.0,3.0,4.0,1.0,NULL,1,4.0,1,0,NULL,0.0,0.0,0,'[10, 0, 0, 0, 0, 0]','{"200": 10}',130,0,10000,0,1000,1000,X'1C84931400000022789C9369992CCCC0C0C0CC0001309A11445C9BBC84C1FE0344E03CBF0800617A057C',0,1,1);
INSERT INTO "runs" VALUES('r1','shop',100,'aiohttp','','running','',0.0,0.0,3.0,NULL,0.0,3.0,1,5.0,5,9,NULL,0.0,0.0,0,'[13, 1, 2, 0, 0, 0]','{"200": 13, "503": 1}',220,0,14100,0,700,1500,X'1C8493140000002C789C9369992CCCC0C0C0C30001CC509A11445C9BBC84C1FE0344E03B17532F33D35146B1A7EC4C00A23507F2',0,1,0);
CREATE TABLE samples (
    run TEXT NOT NULL,
    at REAL NOT NULL,
    body BLOB NOT NULL,               -- a Sample, packed; its outcomes are in the series
    state TEXT NOT NULL DEFAULT '',   -- of the run
    PRIMARY KEY (run, at)
) WITHOUT ROWID;
INSERT INTO "samples" VALUES('r1',4.0,X'789C5590B14A03411086EF4E53282952495A0B41B011C4225898375936BB93E4C8EDEEB933A7492F686B930710BDBB346A9977382EA41541B057B0B3752F89244E35DFB0F3FDC3BE7BCD7B4E45BBE12D2A4310464B2CCEBF9783270B1709202123433C92132E84493481DC4923E008F2308B41CB50F74E1EA4D150771B089A1827A60C92977341E125302CDA4BA5F76C121246013234ACCBED78D7F7ABEC2B6307603198849A75A3B0D7A7ED75BCCB00E9E59613301B63B17279F99F6CBC3AB8332267B620C0A54AEF31E23DB67E9E454EA0C5E83AEB24620084E33298FAE5D6AD5FD6E67E8A89620996F546AADC11AE0BA6A9E2C3AAABCD33055C33557DCEF0E0E3ACF996C6A7C70BFEFCBAEBDB97FD346E2DF967F6BA777314386E6D725EF1BFC942BEC1BFAF019B87','running');
CREATE TABLE series (
    run TEXT NOT NULL,
    second INTEGER NOT NULL,                -- the first of those that it tells of; -1 for no known one
    seconds INTEGER NOT NULL DEFAULT 1,     -- how many they are
    outcomes TEXT NOT NULL,
    published TEXT NOT NULL DEFAULT '[0,0,0,0,0,0]',
    PRIMARY KEY (run, second)
) WITHOUT ROWID;
INSERT INTO "series" VALUES('done',3,1,'[10,0,0,0,0,0]','[0,0,0,0,0,0]');
INSERT INTO "series" VALUES('r1',3,1,'[10,0,1,0,0,0]','[10,0,1,0,0,0]');
INSERT INTO "series" VALUES('r1',4,1,'[3,1,1,0,0,0]','[0,0,0,0,0,0]');
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
INSERT INTO "slices" VALUES('done',0,10,'accounted');
INSERT INTO "slices" VALUES('r1',0,4,'accounted');
INSERT INTO "slices" VALUES('r1',4,5,'leased');
INSERT INTO "slices" VALUES('r1',5,12,'accounted');
INSERT INTO "slices" VALUES('r1',12,19,'leased');
INSERT INTO "slices" VALUES('r1',19,20,'pending');
INSERT INTO "slices" VALUES('r1',20,40,'leased');
INSERT INTO "slices" VALUES('r1',40,60,'leased');
INSERT INTO "slices" VALUES('r1',60,100,'pending');
CREATE TABLE specs (
    run TEXT PRIMARY KEY,
    spec TEXT NOT NULL                -- apart from what changes with each checkpoint: it may be large
);
INSERT INTO "specs" VALUES('done','{"requests":10,"urls":[],"method":"GET","headers":[],"body":null,"concurrency":100,"workers":null,"start_within_s":null,"engine":"aiohttp","timeout_s":10.0,"grace_s":null,"expect_status":["200"],"range_size":null,"servers":null,"delay":null,"seed":null,"name":"shop","cacert":null,"cert":null,"key":null,"insecure":false,"proxy":null,"max_redirects":0,"cookies":false}');
INSERT INTO "specs" VALUES('r1','{"requests":100,"urls":[],"method":"GET","headers":[],"body":null,"concurrency":100,"workers":null,"start_within_s":null,"engine":"aiohttp","timeout_s":10.0,"grace_s":null,"expect_status":["200"],"range_size":null,"servers":null,"delay":null,"seed":null,"name":"shop","cacert":null,"cert":null,"key":null,"insecure":false,"proxy":null,"max_redirects":0,"cookies":false}');
CREATE TABLE streams (
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    last_ns INTEGER NOT NULL,               -- of the newest line
    newest_ns INTEGER NOT NULL DEFAULT 0,   -- of the newest line that was sent, by the wall clock
    PRIMARY KEY (run, kind)
) WITHOUT ROWID;
INSERT INTO "streams" VALUES('done','event',4000000000,0);
INSERT INTO "streams" VALUES('done','range',4000000000,0);
INSERT INTO "streams" VALUES('done','status',4000000000,0);
INSERT INTO "streams" VALUES('r1','event',6000000000,0);
INSERT INTO "streams" VALUES('r1','range',6000000000,0);
INSERT INTO "streams" VALUES('r1','status',6000000000,0);
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
INSERT INTO "workers" VALUES('done','w1',10,0.5,80.0,0);
INSERT INTO "workers" VALUES('r1','w1',14,1.0,80.0,0);
INSERT INTO "workers" VALUES('r1','w2',2,0.5,80.0,1);
CREATE INDEX live_runs ON runs (queued_at, state, run)
    WHERE state IN ('running', 'pausing', 'cancelling', 'pending');
CREATE INDEX owing_runs ON runs (run) WHERE owes_summary = 1;
CREATE INDEX listed_runs ON runs (created_at);
CREATE INDEX pending_slices ON slices (run, start) WHERE state = 'pending';
CREATE INDEX active_leases ON leases (run) WHERE state = 'active';
CREATE INDEX resent_leases ON leases (run) WHERE resent > 0;
CREATE INDEX unpublished_series ON series (run, second) WHERE outcomes != published;
CREATE INDEX events_of_runs ON events (run);
CREATE INDEX losable_lines ON outbox (id) WHERE kind IN ('latency', 'worker', 'coverage');
CREATE INDEX outbox_of_runs ON outbox (run);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('outbox',13);
PRAGMA user_version = 10;
COMMIT;
