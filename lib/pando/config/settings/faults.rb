# frozen_string_literal: true

module Pando
  class Config
    # How long requests, starts and stops may take.
    Settings.group "Deadlines" do
      setting :timeout,
              type: Types::OrOff.new(Types::Seconds.new), default: 20.0, development: nil,
              flags: %w[-t --timeout], argument: "SECONDS",
              help: "Raise Pando::RequestTimeout in a request that takes longer, and answer it with 504."

      setting :timeout_grace,
              type: Types::Seconds.new(least: 0), default: 2.0, development: 0.5, within: :timeout,
              help: "Kill the worker if its request has not ended this long after the timeout."

      setting :timeout_streaming,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, within: :timeout,
              help: "How long a response may take after its head has been sent. false: no limit."

      setting :spawn_timeout,
              type: Types::Seconds.new, default: 60.0, development: 3600.0,
              help: "Kill a worker, service or forked mold that is not ready this long after Pando ordered it."

      setting :boot_timeout,
              type: Types::Seconds.new, default: 300.0, development: 3600.0,
              help: "How long a mold may take to load the application from scratch (a cold boot)."

      # Orchestrators kill after 30 seconds by default; the server must have ended by then.
      setting :stop_timeout,
              type: Types::Seconds.new, default: 25.0,
              help: "How long a graceful stop waits before it kills the workers that are still busy."

      setting :drain,
              type: Types::Seconds.new(least: 0), default: 0.0,
              help: "How long a worker that is replaced keeps its WebSockets and streams.",
              check: ->(value, config) { Settings::NEEDS_REACTOR.call(value.nonzero?, config) }

      setting :give_up_after,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, within: :give_up,
              help: "How long a server without any ready worker keeps trying before it exits with status 1."
    end

    # Requests of one method and path that kill worker after worker.
    Settings.group "Poison requests" do
      setting :poison_deaths,
              type: Types::Whole.new(1..1000), default: 3, unit: "workers", within: :poison,
              help: "Emit `request.poison` when requests of one method and path have killed this many workers."

      setting :poison_within,
              type: Types::Seconds.new, default: 60.0, within: :poison,
              help: "The time within which that many workers must have died."

      setting :poison_refuse,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, within: :poison,
              help: "How long workers then answer that method and path with 503. false: they go on serving it."
    end

    # What Pando checks before and after a fork, and what it does about findings (docs/audit.md).
    Settings.group "Fork-safety" do
      setting :self_check,
              type: Types::Truth.new, default: true,
              help: "Test what uses locks (allocator, loader, resolver) in each forked process before it is ready."

      setting :self_check_timeout,
              type: Types::Seconds.new, default: 5.0, within: :self_check,
              help: "Kill a process that stands still this long in one step of its self-check, and name the step."

      descriptors = Types::Choice.new(:allow, :report, :close, :refuse)
      threads = Types::Choice.new(:allow, :report, :refuse, :fail)

      setting :fork_safety_sockets,
              type: descriptors, default: :report, within: :fork_safety,
              help: "What Pando does about a connected socket that two live processes share."

      setting :fork_safety_pipes,
              type: descriptors, default: :report, within: :fork_safety,
              help: "What Pando does about one end of a pipe that a new mold opened or inherited."

      setting :fork_safety_files,
              type: descriptors, default: :report, within: :fork_safety,
              help: "What Pando does about a file whose position all processes would share."

      setting :fork_safety_events,
              type: Types::Choice.new(:allow, :report, :refuse), default: :report, within: :fork_safety,
              help: "What Pando does about an event source (epoll, eventfd, ...) that a new mold opened or inherited."

      setting :fork_safety_threads,
              type: Types::ListedPolicy.new(:allow, :report, :refuse, :fail, default: :refuse,
                                                                             list: "a list of gems' names and paths"),
              default: :refuse, within: :fork_safety,
              help: "What Pando does about a Ruby thread that forked processes would lack."

      setting :fork_safety_native_threads,
              type: threads, default: :report, within: :fork_safety,
              help: "What Pando does about a native library's thread that is alive just before a fork."

      setting :fork_safety_state,
              type: Types::ListedPolicy.new(:allow, :report, :refuse, default: :refuse,
                                                                      list: "a list of what may change"),
              default: :refuse, within: :fork_safety,
              check: lambda { |policy, _|
                next unless policy.is_a?(Hash) && Platform.linux?

                require "pando/fork_safety/process_state"
                names = ForkSafety::ProcessState::Names
                wrong = policy[:allow].find { |one| !names.known?(one) } or next
                "allow: has #{wrong.inspect}, which Pando does not check." \
                  "#{Suggestion.for(wrong, names.all)} See docs/audit.md"
              },
              help: "What Pando does about a worker if a request changed its process: directory, umask, user, limits."

      setting :fork_safety_trace,
              type: Types::Truth.new, default: false, within: :fork_safety,
              help: "Record where each IO object is created, so that the audit can name the line."

      setting :keep_io,
              type: Types::Text.new("an address or a path, in which * stands for anything", /\A[\x21-\x7e]{1,1000}\z/),
              default: [].freeze, traits: %i[repeatable],
              help: "Sockets connected to this address, and files with this path, are shared on purpose. Repeatable."

      setting :prepared_library,
              type: Types::Text.new("a gem's name", /\A[\w.-]{1,100}\z/), default: [].freeze, traits: %i[repeatable],
              help: "A library that must be prepared for forks, and that your hooks prepare. Repeatable."
    end
  end
end
