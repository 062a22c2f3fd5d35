# frozen_string_literal: true

module Pando
  class Config
    # How long requests, starts and stops may take.
    Settings.group "Deadlines" do
      setting :timeout,
              type: Types::OrOff.new(Types::Seconds.new), default: 20.0, development: nil, unit: "seconds",
              flags: %w[-t --timeout], argument: "SECONDS",
              help: "Raise Pando::RequestTimeout in a request that takes longer, and answer it with 504.",
              notes: <<~MARKDOWN,
                Pando then replaces the worker. `env["pando.timeout"]` extends or disables the deadline of a single
                request. The deadline applies until the head of the response has been sent; for the rest see
                `timeout streaming:`.
              MARKDOWN
              example: "timeout 20, grace: 2, streaming: 600"

      setting :timeout_grace,
              type: Types::Seconds.new(zero: true), default: 2.0, development: 0.5, unit: "seconds",
              within: :timeout, keyword: :grace,
              help: "Kill the worker if its request has not ended this long after the timeout."

      setting :timeout_streaming,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, unit: "seconds", within: :timeout,
              keyword: :streaming,
              help: "How long a response may take after its head has been sent. false: no limit.",
              notes: <<~MARKDOWN
                By default streamed bodies and upgraded or hijacked connections may last as long as the application
                likes. With a number, a new deadline begins when the head has been sent; Pando then ends the response
                like any request that takes too long. Until it ends, it keeps its worker busy. A rollout waits
                up to `stop_timeout` for it.
              MARKDOWN

      setting :spawn_timeout,
              type: Types::Seconds.new, default: 60.0, development: 3600.0, unit: "seconds",
              help: "Kill a worker, service or forked mold that is not ready this long after Pando ordered it.",
              example: "spawn_timeout 30"

      setting :boot_timeout,
              type: Types::Seconds.new, default: 300.0, development: 3600.0, unit: "seconds",
              help: "How long a mold may take to load the application from scratch (a cold boot).",
              notes: <<~MARKDOWN,
                It applies when the server starts, at a reload, and when no process is left from which Pando could fork
                a worker. At a reload the config file must also be read within this time.
              MARKDOWN
              example: "boot_timeout 2.minutes"

      # Orchestrators kill after 30 seconds by default; the server must have ended by then.
      setting :stop_timeout,
              type: Types::Seconds.new, default: 25.0, unit: "seconds",
              help: "How long a graceful stop waits before it kills the workers that are still busy.",
              notes: <<~MARKDOWN,
                The time also bounds what a leaving worker does for libraries that have queued jobs or mails inside it:
                it works on them for up to four fifths of this time. The event `work.dropped` names the rest.
                See [libraries](libraries.md#work-that-is-queued-in-a-worker).
              MARKDOWN
              example: "stop_timeout 60"

      setting :drain,
              type: Types::Seconds.new(zero: true), default: 0.0, unit: "seconds",
              help: "How long a worker that is replaced keeps its WebSockets and streams.",
              notes: <<~MARKDOWN,
                A worker that a reload, a refork, `pando scale` or a memory limit replaces takes no further request. It
                keeps the connections that it has for up to this time, and leaves when the last one has ended. Its
                successor takes new requests meanwhile. When the time is up, the worker tells the clients that are left
                to connect again, and leaves within `stop_timeout`. A stop of the server does not wait for `drain`.
                See [live connections](live.md).
              MARKDOWN
              example: "drain 10.minutes",
              check: ->(value, config) { Settings::NEEDS_REACTOR.call(value.nonzero?, config) }

      setting :give_up_after,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, unit: "seconds",
              within: :give_up, keyword: :after,
              help: "How long a server without any ready worker keeps trying before it exits with status 1.",
              notes: <<~MARKDOWN,
                The server exits when no worker of any pool has been ready for this long and the last attempt to start
                one has failed. With `false` it never stops trying. Set a time if your supervisor can do more than
                restart the server, for instance move it to another machine. A server that cannot even start exits at
                once. See [healing](healing.md#when-nobody-serves).
              MARKDOWN
              example: "give_up after: 10.minutes"
    end

    # Requests of one method and path that kill worker after worker.
    Settings.group "Poison requests" do
      setting :poison_deaths,
              type: Types::Whole.new(1..1000), default: 3, unit: "workers", within: :poison, keyword: :deaths,
              help: "Emit `request.poison` when requests of one method and path have killed this many workers.",
              notes: <<~MARKDOWN,
                It does not matter how the workers die: by an exit, SEGV, SIGKILL or anything else. Workers that Pando
                itself ends, for a timeout or for their memory, do not count.
                See [healing](healing.md#requests-that-end-workers).
              MARKDOWN
              example: "poison deaths: 3, within: 60, refuse: 300"

      setting :poison_within,
              type: Types::Seconds.new, default: 60.0, unit: "seconds", within: :poison, keyword: :within,
              help: "The time within which that many workers must have died."

      setting :poison_refuse,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, unit: "seconds", within: :poison,
              keyword: :refuse,
              help: "How long workers then answer that method and path with 503. false: they go on serving it.",
              notes: <<~MARKDOWN
                `Retry-After` gives the time that is left. All clients get the 503, even if their request would have
                done no harm: Pando does not look at the query, the header fields or the body. It refuses at most 64
                pairs of method and path at the same time, and never a path of 112 bytes or more.
              MARKDOWN
    end

    # What Pando checks before and after a fork, and what it does about findings (docs/audit.md).
    Settings.group "Fork-safety" do
      setting :self_check,
              type: Types::Truth.new, default: true,
              help: "Test what uses locks (allocator, loader, resolver) in each forked process before it is ready.",
              notes: <<~MARKDOWN,
                With a block, `self_check { |server, role| ... }` is a hook that adds a check of your own.
                See [self-check](self-check.md).
              MARKDOWN
              example: "self_check false"

      setting :self_check_timeout,
              type: Types::Seconds.new, default: 5.0, unit: "seconds", within: :self_check, keyword: :timeout,
              help: "Kill a process that spends this long in one step of its self-check, and name the step."

      descriptors = Types::Choice.new(:allow, :report, :close, :refuse)
      threads = Types::Choice.new(:allow, :report, :refuse, :fail)

      setting :fork_safety_sockets,
              type: descriptors, default: :report, within: :fork_safety, keyword: :sockets,
              help: "What Pando does about a connected socket that two live processes share.",
              notes: <<~MARKDOWN,
                - `:report` emits an event.
                - `:close` cuts the new process off from the socket; the other side notices nothing.
                - `:refuse` ends the new process before it serves: Pando discards a new generation, and a server that is
                  just starting does not start.
                - `:allow` ignores it.

                The values mean the same for pipes, files and event sources below. See [the audit](audit.md).
              MARKDOWN
              example: "fork_safety sockets: :refuse"

      setting :fork_safety_pipes,
              type: descriptors, default: :report, within: :fork_safety, keyword: :pipes,
              help: "What Pando does about one end of a pipe that a new mold opened or inherited."

      setting :fork_safety_files,
              type: descriptors, default: :report, within: :fork_safety, keyword: :files,
              help: "What Pando does about a file whose position all processes would share."

      setting :fork_safety_events,
              type: Types::Choice.new(:allow, :report, :refuse), default: :report,
              within: :fork_safety, keyword: :events,
              help: "What Pando does about an event source (epoll, eventfd, ...) that a new mold opened or inherited."

      setting :fork_safety_threads,
              type: Types::ListedPolicy.new(:allow, :report, :refuse, :fail, default: :refuse,
                                                                             list: "a list of gems' names and paths"),
              default: :refuse, within: :fork_safety, keyword: :threads,
              help: "What Pando does about a Ruby thread that forked processes would lack.",
              notes: <<~MARKDOWN,
                - `:refuse` does not refork from a worker with such a thread.
                - `:report` only emits an event.
                - `:fail` also stops the boot of an application that has such a thread once it is loaded.
                - `:allow` ignores it.

                A Hash allows single threads. Name the gem that starts the thread, or the end of a path, with or without
                the line: `fork_safety threads: { allow: ["some_gem", "app/lib/poller.rb:12"] }`. `otherwise:` says what
                Pando does about all other threads; its default is `:refuse`. Pando tries out whether a thread comes
                back in forked processes, see [the audit](audit.md#threads-that-do-not-come-back).
              MARKDOWN
              example: 'fork_safety threads: { allow: ["some_gem", "app/lib/poller.rb"] }'

      setting :fork_safety_native_threads,
              type: threads, default: :report, within: :fork_safety, keyword: :native_threads,
              help: "What Pando does about a native library's thread that is alive just before a fork."

      setting :fork_safety_state,
              type: Types::ListedPolicy.new(:allow, :report, :refuse, default: :refuse,
                                                                      list: "a list of what may change"),
              default: :refuse, within: :fork_safety, keyword: :state,
              check: lambda { |policy, _|
                next unless policy.is_a?(Hash) && Platform.linux?

                require "pando/fork_safety/process_state"
                names = ForkSafety::ProcessState::Names
                wrong = policy[:allow].find { |one| !names.known?(one) } or next
                "allow: has #{wrong.inspect}, which Pando does not check." \
                  "#{Suggestion.for(wrong, names.all)} See docs/audit.md"
              },
              help: "What Pando does about a worker if a request changed its process: directory, umask, user, limits.",
              notes: <<~MARKDOWN,
                - `:refuse` restores the directory and the umask in the next mold. It does not refork from a worker with
                  any other change; Pando asks another worker.
                - `:report` only emits an event. The next workers inherit the change.
                - `:allow` ignores it.

                A Hash allows single changes. Name the `subject` of the event, or its first word:
                `fork_safety state: { allow: ["umask", "env TZ", "signal"] }`. `otherwise:` says what Pando does about
                all other changes; its default is `:refuse`. See [the audit](audit.md#what-a-request-has-changed).
              MARKDOWN
              example: 'fork_safety state: { allow: ["env TZ"] }'

      setting :fork_safety_trace,
              type: Types::Truth.new, default: false, within: :fork_safety, keyword: :trace,
              help: "Record where each IO object is created, so that the audit can name the line.",
              notes: "This costs a few microseconds per IO object, and nothing else."

      setting :keep_io,
              type: Types::Text.new("an address or a path, in which * stands for anything", /\A[\x21-\x7e]{1,1000}\z/),
              default: [].freeze, traits: %i[repeatable],
              help: "Sockets connected to this address, and files with this path, are shared on purpose. Repeatable.",
              notes: "The audit ignores them, just as it ignores what your code passes to `Pando.keep_io`.",
              example: 'keep_io "10.0.0.5:8125"'

      setting :prepared_library,
              type: Types::Text.new("a gem's name", /\A[\w.-]{1,100}\z/), default: [].freeze, traits: %i[repeatable],
              help: "A library that must be prepared for forks, and that your hooks prepare. Repeatable.",
              notes: "Pando then neither refuses a refork because of it nor reports it. See [libraries](libraries.md).",
              example: 'prepared_library "bunny"'
    end
  end
end
