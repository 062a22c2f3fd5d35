# frozen_string_literal: true

module Pando
  class Config
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

                require "pando/fork_safety/process_state/reading"
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
