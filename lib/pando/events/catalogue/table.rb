# frozen_string_literal: true

module Pando
  module Events
    # The table. Add a new event both here and in docs/events.md.
    module Catalogue
      define "monitor.listening", :info, %i[pid listen workers nodes],
             "The server listens on its addresses and starts to load the application."
      define "server.ready", :info, %i[pid workers nodes threads seconds environment url listen],
             "The application is loaded and every worker is ready, `seconds` after the start. A worker has up to " \
             "`threads` requests at once. Emitted once per start."
      define "monitor.stopping", :info, %i[pid reason seconds status],
             "The server stops, because it was told to or because it gave up. If it gave up, `status` is 1 and the " \
             "level is error. The monitor kills every process that has not exited after `seconds`.", failed: true
      define "server.failing", :error, %i[reason seconds],
             "No worker is ready, and the first attempt to start one has failed. The server keeps trying. If " \
             "`give_up after:` is set, it exits after another `seconds`. Emitted once until a worker is ready again."
      define "monitor.stopped", :info, %i[pid status],
             "All child processes have exited. The monitor exits with this status."
      define "drain.started", :info, %i[reason seconds],
             "Health checks fail from now on; the server still answers all other requests. If `seconds` is given, " \
             "the server stops after that time."
      define "drain.ended", :info, %i[reason], "Health checks succeed again; load balancers may send requests."
      define "monitor.starved", :error, %i[reason],
             "The kernel refused the monitor memory or a file descriptor. The monitor tries again."
      define "monitor.stalled", :warn, %i[seconds processor],
             "One turn of the monitor's loop took `seconds` longer than planned and used `processor` seconds of CPU " \
             "time. The monitor read no messages during that time. If the server was stopped or its container " \
             "frozen, the monitor extends all deadlines by that time."
      define "monitor.upgrading", :info, %i[pid from to seconds],
             "A trial run of the new Pando version has succeeded, and it now replaces the running monitor. `seconds` " \
             "is the time since the upgrade was requested."
      define "monitor.upgraded", :info, %i[pid from to seconds],
             "The monitor runs another version of Pando. During `seconds` it read no messages."
      define "upgrade.started", :info, %i[from reason],
             "An upgrade of the monitor to the installed version of Pando has started."
      define "upgrade.failed", :error, %i[from reason backtrace],
             "The monitor still runs its old version of Pando. `backtrace` is the error output of the new one."
      define "upgrade.incomplete", :warn, %i[settings],
             "These settings differ from the configuration file on disk. Run `pando reload` to apply them."
      define "environment.contradictory", :warn, %i[environment reason],
             "RAILS_ENV, RACK_ENV and APP_ENV name different environments. Pando uses the first one that is set."
      define "listener.opened", :info, %i[listen inherited],
             "The server listens on this address. `inherited`: a service manager had opened the socket."
      define "listener.closed", :info, %i[listen],
             "A reload has removed this address. Clients that were already connected still get their responses."
      define "listener.unused", :warn, %i[listen name reason], "The server was handed a socket that it does not serve."
      define "listener.failed", :warn, %i[listen reason],
             "A reload could not change the options of this listening socket."
      define "control.unavailable", :warn, %i[reason advice],
             "The server has no control socket, so commands such as `pando status` do not work. If another server of " \
             "the same folder holds the socket, `reason` has its pid."
      define "control.failed", :error, %i[reason backtrace],
             "A command sent to the control socket raised an error in the monitor."
      define "events.missed", :warn, %i[count],
             "Only a service that follows the monitor's events gets this one, from `each_event`: it read them so " \
             "slowly that `count` events are no longer kept."
      define "admin.ready", :info, %i[pid listen seconds],
             "The admin process answers at its addresses, `seconds` after its start."
      define "admin.exposed", :warn, %i[listen advice],
             "Other machines can reach this address of the admin process. `advice` says what they may read."
      define "admin.lost", :warn, %i[pid reason],
             "The admin process died. No request is lost, and the monitor starts another one at once."
      define "admin.failed", :error, %i[pid reason],
             "The admin process did not become ready. The monitor starts another one, after longer " \
             "and longer pauses."
      define "setting.ignored", :warn, %i[name reason advice],
             "Pando ignores a file or an environment variable that another server would use. `advice` says what to " \
             "set instead."
      define "setting.followed", :info, %i[name reason],
             "Pando obeys an environment variable that was made for another server."
      define "workers.scaled", :info, %i[from to reason], "The number of workers that Pando keeps running has changed."
      define "pool.failing", :error, %i[reason],
             "No worker of this pool is ready, and the pool cannot boot. The other pools keep serving, and Pando " \
             "keeps trying to boot this one."

      define "restart.throttled", :error, %i[role slot name generation rate seconds reason],
             "A process dies or fails to start again and again, `rate` times within the last minute. The monitor " \
             "waits `seconds` before the next attempt."
      define "restart.recovered", :info, %i[role slot name generation],
             "The process has run long enough without dying; the throttle is lifted."
      define "memory.short", :warn, %i[reason],
             "Memory is short. Pando replaces the worker with the most private memory."
      define "memory.recovered", :info, %i[], "Memory is no longer short."

      define "mold.booting", :info, %i[generation pid reason], "A new process loads the application from cold."
      define "mold.ready", :info, %i[generation pid], "A mold reported that it can fork workers."
      define "mold.exited", :info, %i[generation pid reason], "A mold exited after it was told to leave."
      define "mold.failed", :error, %i[generation pid reason backtrace],
             "A mold did not become ready. Pando discards its generation."
      define "mold.discarded", :info, %i[generation pid reason],
             "A mold was ended because its generation failed. Nothing is forked from it again."
      define "mold.refused", :info, %i[generation pid reason],
             "A mold was ended because its workers would lack a thread."
      define "mold.leaving", :info, %i[generation pid reason], "A mold is being stopped to free its private memory."
      define "mold.released", :info, %i[generation pid reason],
             "That mold has exited. A worker forks the next mold when one is needed."
      define "mold.retired", :info, %i[generation pid reason], "A mold was ended after its successor had proved itself."
      define "mold.killed", :warn, %i[generation pid reason], "The monitor killed a mold."
      define "mold.lost", :error, %i[generation pid reason cause], "A mold died unexpectedly."

      define "worker.spawning", :info, %i[slot generation], "The mold was ordered to fork a worker."
      define "worker.ready", :info, %i[slot generation pid prefaulted prefault_seconds], "A worker takes requests."
      define "worker.leaving", :info, %i[slot generation pid reason cause drain],
             "A worker takes no more requests and will exit. `drain` says for how many seconds it may keep its " \
             "WebSockets and streams first."
      define "worker.hurried", :warn, %i[slot generation pid connections seconds reason],
             "A leaving worker closes its WebSockets and streams `seconds` earlier than `drain` allows, for `reason`."
      define "worker.exited", :info, %i[slot generation pid requests reason],
             "A worker exited after it was told to leave."
      define "worker.failed", :error, %i[slot generation pid reason backtrace], "A worker did not become ready."
      define "worker.killed", :error, %i[slot generation pid reason request seconds requests],
             "The monitor killed a worker. `request` is the request that the worker was serving, `seconds` for how " \
             "long."
      define "worker.lost", :error, %i[slot generation pid reason cause request seconds requests],
             "A worker died unexpectedly. `request` is the request that it was serving, `seconds` for how long. " \
             "`cause` is oom if the kernel killed it for lack of memory."
      define "worker.unsafe", :warn, %i[slot generation pid reason],
             "A worker cannot become a mold, because the app or one of its libraries forbids it."
      define "worker.safe", :info, %i[slot generation pid],
             "A worker can become a mold again; the obstacle that `worker.unsafe` reported is gone."

      define "allocator.loaded", :info, %i[generation pid name version],
             "The application uses an allocator other than the C library's malloc. With the C library's malloc there " \
             "is no event."

      define "connections.few", :warn, %i[name connections threads advice],
             "ActiveRecord may open fewer connections to the database `name` than a worker has threads, so requests " \
             "wait for one another. Follow `advice`."

      define "libraries.checked", :info, %i[fine handled limits_reforking refused unknown],
             "The application is loaded, and Pando has checked which of its libraries survive a fork. See " \
             "docs/libraries.md."
      define "library.reported", :warn, %i[library version reason advice],
             "Pando promotes no worker that uses this library the way the mold does now. Follow `advice` to change " \
             "that."
      define "library.failed", :warn, %i[library slot generation pid reason],
             "Pando's preparation of a library for a fork failed. The fork took place nevertheless."

      define "reactor.ready", :info, %i[pid], "The reactor accepts connections."
      define "reactor.fallback", :warn, %i[reason],
             "Pando cannot execute the reactor's own program. The reactor is a fork of the monitor instead and takes " \
             "some MiB more."
      define "reactor.limited", :warn, %i[connections reason],
             "The reactor can hold only this many connections, fewer than `max_connections`."
      define "spool.unavailable", :warn, %i[path reason advice],
             "The reactor has no directory for large request bodies and responses."
      define "spool.in_memory", :warn, %i[path reason],
             "The directory for large request bodies and responses is on a tmpfs, so its files take up memory."
      define "spool.failed", :warn, %i[count reason path advice],
             "`count` writes to the spool directory, or reads from it, have failed. `reason` is the last error. The " \
             "reactor tries again after a second."
      define "log.failed", :warn, %i[count reason path advice],
             "The access log could not be written; `reason` is the last error. `count` lines were dropped since the " \
             "last event, because the buffer in memory was full; the others wait. Requests are served."
      define "log.recovered", :info, %i[count path],
             "The access log has been written without a fault for ten seconds, after `log.failed`. `count` lines are " \
             "missing from it."
      define "reactor.exited", :info, %i[pid reason],
             "The reactor has answered all the requests that it held, and has exited."
      define "reactor.failed", :error, %i[pid reason], "A reactor did not become ready. The monitor starts another one."
      define "reactor.stalled", :warn, %i[pid seconds reason],
             "The reactor has been waiting for a disk for this long. If that lasts longer than a minute, the monitor " \
             "kills it."
      define "reactor.killed", :error, %i[pid reason connections requests],
             "The monitor killed the reactor. Its connections are closed, and the monitor starts another one."
      define "reactor.lost", :error, %i[pid reason connections requests],
             "The reactor died. Its connections are closed, and the monitor starts another one."

      GENERATION = %i[generation pid purpose source source_slot].freeze
      private_constant :GENERATION

      define "generation.booting", :info, GENERATION,
             "A new generation is being started. If `source` is given, its mold is forked from that worker."
      define "generation.ready", :info, GENERATION, "The new generation's mold is ready."
      define "generation.canary", :info, GENERATION,
             "The new generation's mold forks its first worker: the canary, if a trial is required."
      define "generation.rolling", :info, GENERATION, "The new generation replaces the other workers."
      define "generation.current", :info, [*GENERATION, :seconds], "Every slot runs the new generation."
      define "generation.kept", :info, [*GENERATION, :requests, :seconds, :longest],
             "Pando keeps this generation's mold while it watches the next generation: until each of the new workers " \
             "has served `requests`, for at least `seconds` and at most `longest`."
      define "generation.retired", :info, [*GENERATION, :reason], "Pando forks nothing more from this old generation."
      define "generation.discarded", :info, [*GENERATION, :reason],
             "A new generation failed; an event of level error or warn has said why. The old generation keeps serving."

      define "generation.refused", :info, [*GENERATION, :reason],
             "Pando gave up a refork although nothing failed. Either the new processes would lack a thread, as " \
             "`finding.reported` has said, or no worker was available to fork the mold."

      define "canary.serving", :info, %i[slot generation pid requests seconds longest],
             "A new generation's first worker serves beside the old ones. It must serve `requests`, for at least " \
             "`seconds` and at most `longest`."
      define "canary.passed", :info, %i[generation requests seconds],
             "The canary did as well as the old workers. Pando replaces the others."
      define "canary.unproven", :info, %i[generation requests seconds reason replayed],
             "The canary did not fail, but it served too few requests for a comparison. Pando replaces the other " \
             "workers and watches the new ones. `replayed` lists what the canary requested from itself (`rollout " \
             "safe_paths:`)."
      define "canary.skipped", :info, %i[generation reason],
             "The canary is ready, and no trial is required. Pando replaces the other workers and watches the new " \
             "ones."
      define "canary.failed", :error, %i[generation requests seconds reason],
             "The canary failed its trial. Pando discards its generation."

      define "watch.failed", :error, %i[generation requests seconds reason],
             "The new generation serves, but does worse than the one before it. Pando replaces all workers from the " \
             "mold that it has kept."

      define "refork.started", :info, %i[slot generation source requests reason choice],
             "Pando chose a worker (`source` is its pid) to fork the next mold. `choice` has the figures that " \
             "decided it."
      define "source.changed", :info, %i[slot generation source requests reason],
             "The chosen worker did not fork the next mold, or must not, for the given `reason`. Pando asks this " \
             "worker instead."
      define "trainee.chosen", :info, %i[slot generation pid requests],
             "While it is idle, this worker gets requests before all others. The next mold will be forked from it."
      define "jit.enabled", :info, %i[slot generation pid],
             "YJIT is on in the trainee. No other process uses it before the first refork (`jit :trainee`)."
      define "jit.unavailable", :warn, %i[setting reason], "YJIT cannot be enabled as `jit` demands."
      define "gc.major_due", :info, %i[slot generation pid cause],
             "Ruby wants a major GC in this worker, which has grown. Pando will replace the worker at a quiet moment."
      define "gc.major_allowed", :info, %i[slot generation pid],
             "A worker has grown so much that Pando no longer defers its major GCs."
      define "gc.deferral_unavailable", :warn, %i[setting reason],
             "Pando cannot defer major GCs as `gc major:` demands. Ruby runs them as usual."
      define "prefault.prepared", :info, %i[generation pid bytes ranges seconds],
             "A mold has found its hot set, the memory that new workers write to first: `bytes` in `ranges`."
      define "prefault.unavailable", :info, %i[generation reason],
             "Pando cannot prefault pages. New workers start without that."

      define "refork.decided", :info, %i[generation decision phase reason rule age saving cost pss],
             "`refork :auto` decided that it is time to refork (`decision` is refork), or that the app is warm " \
             "(settle). See docs/reforking.md."
      define "refork.refused", :warn, %i[wanted reason slot source told],
             "A refork is not possible now. If a worker refused to be forked, `source` and `slot` name it. The same " \
             "obstacle is reported once, unless you ask for a refork again. `told`: `finding.reported`, " \
             "`fork.failed`, `spawn.failed` or `mold.failed` has already reported the cause; the level is then info."
      define "refork.withheld", :info, %i[wanted reason],
             "A refork was requested, but no worker may be promoted because of a thread that `finding.reported` has " \
             "named."
      define "refork.postponed", :info, %i[reason seconds],
             "A refork did not succeed. The next automatic attempt waits this long."
      define "refork.suspended", :error, %i[count reason],
             "`count` reforks in a row did not succeed. Pando reforks no more until you run `pando refork --force` " \
             "or reload."
      define "refork.resumed", :info, %i[reason], "Reforking is no longer suspended."
      define "refork.finished", :info, %i[generation pid seconds], "All workers come from the new mold."
      define "leak.inherited", :warn, %i[generation bytes requests reason advice],
             "Each request leaves `bytes` in the memory that every mold passes on to the next one. This estimate is " \
             "based on `requests`. `advice` says what Pando does about it. Emitted once per release. See " \
             "docs/reforking.md."
      define "reboot.started", :info, %i[reason],
             "Because of an inherited leak, the application boots from cold and will replace the running generation."
      define "reboot.finished", :info, %i[generation seconds from to],
             "The application that booted from cold has replaced the leaking generation. `from` and `to` are the " \
             "bytes that the mold takes, not counting file-backed memory."
      define "reboot.failed", :warn, %i[generation reason seconds],
             "The cold boot failed, and the old generation keeps serving. The next attempt comes after `seconds` at " \
             "the earliest."
      define "reload.started", :info, %i[reason], "Pando reads the configuration again and boots a new release."
      define "reload.serving", :info, %i[generation seconds reason longest],
             "Every worker runs the new release. Pando watches it for at most `longest` seconds and then applies its " \
             "settings and services. `reason` says why the canary proved nothing; it is absent if the canary passed."
      define "reload.finished", :info, %i[generation seconds],
             "The new release is in service for good, with its settings and services."
      define "reload.incomplete", :warn, %i[settings],
             "These settings have changed and take effect only after a restart."
      define "reload.failed", :error, %i[generation reason advice],
             "The new release is not in service. The old one keeps serving."
      define "spawn.failed", :error, %i[role slot generation reason],
             "Pando could not start a process or order one from the mold."
      define "fork.failed", :error, %i[role slot generation reason],
             "The kernel or a `before_fork` hook refused a fork. Pando tries again later."

      define "check.failed", :info, %i[role slot generation pid step reason backtrace],
             "Belongs to the `worker.failed` or `mold.failed` before it. `step` is the step of the self-check in " \
             "which the child got stuck or crashed, `backtrace` shows where its threads were."
      define "audit.finished", :info, %i[generation pid descriptors findings seconds reason],
             "Pando has examined the descriptors and threads of a new mold. If it could not, `reason` says why."
      define "finding.reported", :warn,
             %i[kind severity subject location reason advice action count role slot generation pid told],
             "Pando found something that a fork breaks, `count` of its kind. `action` says what Pando did about it, " \
             "if anything. `told`: another worker has made the same change; the level is then info."

      define "service.ready", :info, %i[name slot generation pid], "A service runs."
      define "service.exited", :info, %i[name slot generation pid reason backtrace],
             "A service exited after it was told to leave."
      define "service.lost", :error, %i[name slot generation pid reason backtrace],
             "A service ended unexpectedly. The monitor starts it again."
      define "service.failed", :error, %i[slot generation pid reason backtrace], "A service did not become ready."

      define "request.refused", :info, %i[slot generation pid status reason remote method path],
             "The request was malformed or not allowed. The client got this status."
      define "proxy.refused", :info, %i[slot generation pid remote reason],
             "A connection to a listener with `proxy_protocol` did not begin with a PROXY header. The connection was " \
             "closed."
      define "request.failed", :error, %i[slot generation pid method path seconds queued lock_wait error],
             "The app raised an error. The client got 500. `lock_wait`: seconds that it waited for Ruby's " \
             "interpreter lock, with `threads`."
      define "request.timed_out", :error,
             %i[slot generation pid method path seconds queued lock_wait location error],
             "A request exceeded its soft timeout. The client got 504, unless the head of the response had been " \
             "sent or the app had called `handled!`. `error` has the backtrace from that moment, `location` is the " \
             "app's own line in it, `lock_wait` as in `request.failed`."
      define "request.slow", :warn, %i[pool slot generation pid request seconds location reason],
             "A request has run for longer than `slow_log` allows. It goes on. `location` is the app's own line, " \
             "`reason` says why the worker could not tell it. Emitted once for each request."
      define "requests.refused", :info, %i[count reason advice],
             "The reactor refused requests as malformed, too large or too slow. `reason` counts each kind. `advice` " \
             "says which setting to raise if a body was longer than `max_body_bytes` or than the `total:` of " \
             "`spool`."
      define "requests.shed", :warn, %i[count reason waiting connections busy],
             "The reactor was overloaded. It answered requests with 503, reset connections whose response had " \
             "begun, or closed idle ones. `reason` counts them by the limit that was reached. `busy` lists what the " \
             "workers are doing."
      define "requests.retried", :warn, %i[count], "Workers died, and other workers served their safe requests."
      define "requests.lost", :warn, %i[count reason slowest request slot generation pid],
             "`count` clients did not get their responses. Either the worker died or gave up, and the client got 502 " \
             "or 504, or a reset if the response had begun. Or the client read its response too slowly, or was " \
             "the slowest one when no memory was left for more; `slowest` is the address and rate of the last such " \
             "client. If the worker died, `worker.killed` or `worker.lost` says why. In direct mode this event " \
             "covers only slow clients, one at a time, each with its `request`."
      define "streams.cut", :info, %i[count],
             "Workers had to leave while they were streaming `count` responses, because `drain` or most of " \
             "`stop_timeout` had passed. The clients saw their connections reset. An EventSource connects again by " \
             "itself."
      define "queue.delayed", :warn, %i[count median p99 waiting],
             "Requests wait too long for a worker. `median` and `p99` are in seconds, rounded up by a quarter at most."
      define "queue.blocked", :error, %i[waiting idle replaced],
             "Requests wait, and the idle workers in the slots `idle` take none of them. Pando replaces these " \
             "workers, and then the reactor if that did not help. The cause is a bug in Pando or in a native " \
             "extension."
      define "queue.stalled", :warn, %i[waiting seconds busy advice],
             "In development, all workers have been busy with the same requests for `seconds`, and others wait. " \
             "`busy` lists what the workers are doing. An app that sends a request to itself waits like this " \
             "forever."
      define "queue.recovered", :info, %i[p99], "Requests no longer wait too long for a worker."
      define "accept.failed", :error, %i[pid reason], "A worker has no file descriptor left for a new connection."
      define "nodes.quiet", :info, %i[reason], "Job nodes take no new jobs from now on. Running jobs continue."
      define "nodes.resumed", :info, %i[reason], "Job nodes take jobs again. Pando replaces the nodes that were quiet."
      define "node.stuck", :info, %i[slot generation pid request seconds reason],
             "The jobs of a node have made no progress for its `timeout`. The monitor kills and replaces the node. " \
             "Belongs to the `worker.killed` that follows."
      define "work.dropped", :warn, %i[library count names slot generation pid],
             "A worker exited before a library had finished the work that it had queued inside the worker, because " \
             "`stop_timeout` had passed or because the work was scheduled for later. `names` says what was lost."
      define "job.failed", :error, %i[node slot pid name reason location],
             "A job raised an error in a node whose library would not report it. `name` is the queue."
      define "job.killed", :warn, %i[node pid name id deaths reason],
             "The node `pid` died while it ran this job of Sidekiq or Solid Queue, perhaps one of several. `name` is " \
             "the job's class, `deaths` counts the deaths during this job so far. `reason` says what happens to the " \
             "job."
      define "job.buried", :error, %i[node name id queue deaths reason],
             "A job of Sidekiq or Solid Queue is not run again, because `deaths` processes or threads have died " \
             "during it. `name` is its class, `reason` says where the job is now."
      define "broker.lost", :warn, %i[node slot pid reason],
             "A node cannot reach the broker that its jobs come from. It tries again with growing pauses."
      define "broker.found", :info, %i[node slot pid seconds], "A node has reached its broker again."
      define "request.killed", :info, %i[slot generation pid request seconds reason],
             "A request exceeded its hard timeout, or its worker exceeded the hard memory limit. The monitor kills " \
             "the worker. Belongs to the `worker.killed` that follows."
      define "request.poison", :error, %i[request count within reason refused],
             "Requests with this method and path have ended `count` workers in the last `within` seconds. `reason` " \
             "says how. If `refused` is given, Pando answers them with 503 for that many seconds (`poison refuse:`)."

      define "profile.written", :info, %i[slot generation pid path request seconds],
             "Pando has profiled the first request of a generation. `path` is the file."
      define "profile.failed", :warn, %i[slot generation pid reason],
             "Pando could not make a profile. The request was served as usual."
      define "pages.failed", :warn, %i[slot generation pid reason],
             "`pando pages` got no recording from this worker. The worker keeps serving."

      define "lines.lost", :error, %i[count pid],
             "Log lines of the process `pid` are missing, because the log could not be written or its reader was too " \
             "slow. This line is logged whatever `log_level` says."
      define "hook.failed", :error, %i[hook slot generation pid reason],
             "A hook raised an error. `hook` is its name, `reason` has its line."
      define "link.malformed", :error, %i[role slot generation pid reason],
             "A child process sent the monitor a malformed message. The monitor ends the child."
      define "orphan.exited", :error, %i[pid parent reason],
             "A process that the app had forked during a request came back as if it were a worker. Pando ended it."
      define "orphan.reaped", :info, %i[pid total],
             "A process that the app had left behind has exited. The monitor reaped it as its parent."
    end
  end
end
