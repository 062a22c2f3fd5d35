# frozen_string_literal: true

module Pando
  class Config
    # What is looked at before and after a fork, and what is done about it (docs/audit.md).
    Settings.group "Fork-safety" do
      setting :self_check,
              type: Types::Truth.new, default: true,
              help: "Each forked process uses what has locks (allocator, loader, resolver, ...) before it is ready.",
              notes: "With a block, `self_check { |server, role| ... }`, it is a hook: a check of your own. " \
                     "See [self-check.md](self-check.md).",
              example: "self_check false"

      setting :self_check_timeout,
              type: Types::Seconds.new, default: 5.0, unit: "seconds", within: :self_check, keyword: :timeout,
              help: "A process that spends this long in one step of its self-check is killed, and the step named."

      descriptors = Types::Choice.new(:allow, :report, :close, :refuse)
      threads = Types::Choice.new(:allow, :report, :refuse, :fail)

      setting :fork_safety_sockets,
              type: descriptors, default: :report, within: :fork_safety, keyword: :sockets,
              help: "What is done about a connected socket that two live processes share.",
              notes: "`:report` tells of it in an event. `:close` cuts the new process off from it, without a word " \
                     "to the other side. `:refuse` ends the new process before it serves: a new generation is " \
                     "discarded, a server does not start. `:allow` says nothing. See [the audit](audit.md).",
              example: "fork_safety sockets: :refuse"

      setting :fork_safety_pipes,
              type: descriptors, default: :report, within: :fork_safety, keyword: :pipes,
              help: "What is done about the end of a pipe that a new mold has, or has inherited."

      setting :fork_safety_files,
              type: descriptors, default: :report, within: :fork_safety, keyword: :files,
              help: "What is done about a file of which all processes would move one position."

      setting :fork_safety_events,
              type: Types::Choice.new(:allow, :report, :refuse), default: :report,
              within: :fork_safety, keyword: :events,
              help: "What is done about an epoll, timerfd, eventfd or the like that a new mold has, or has inherited."

      setting :fork_safety_threads,
              type: Types::ListedPolicy.new(:allow, :report, :refuse, :fail, default: :refuse,
                                                                             list: "a list of gems' names and paths"),
              default: :refuse, within: :fork_safety, keyword: :threads,
              help: "What is done about a Ruby thread that forked processes would lack.",
              notes: "`:refuse` refuses to refork from a worker with such a thread, `:report` only says so, and " \
                     "`:fail` also stops the boot of an app that has one when it is loaded. `:allow` says nothing. A " \
                     "Hash allows single threads, by the gem that starts them or by the end of a path, with or " \
                     "without the line: `fork_safety threads: { allow: [\"some_gem\", \"app/lib/poller.rb:12\"] }`; " \
                     "`otherwise:` says what is done about the others, and is `:refuse` if it is left out. Whether a " \
                     "thread comes back in forked processes is tried out, see " \
                     "[the audit](audit.md#threads-that-do-not-come-back).",
              example: 'fork_safety threads: { allow: ["some_gem", "app/lib/poller.rb"] }'

      setting :fork_safety_native_threads,
              type: threads, default: :report, within: :fork_safety, keyword: :native_threads,
              help: "What is done about a native library's thread that is alive when its process is to be forked."

      setting :fork_safety_state,
              type: Types::ListedPolicy.new(:allow, :report, :refuse, default: :refuse,
                                                                      list: "a list of what may change"),
              default: :refuse, within: :fork_safety, keyword: :state,
              check: lambda { |policy, _|
                next unless policy.is_a?(Hash) && Platform.linux?

                require "pando/fork_safety/process_state/names"
                names = ForkSafety::ProcessState::Names
                wrong = policy[:allow].find { |one| !names.known?(one) } or next
                "allow: has #{wrong.inspect}, which is nothing that is looked at." \
                  "#{Suggestion.for(wrong, names.all)} See docs/audit.md"
              },
              help: "What is done about a worker whose process a request has changed: directory, umask, user, limits.",
              notes: "`:refuse` gives the next mold its former directory and umask, and refuses to refork from a " \
                     "worker with any other change: another worker is asked. `:report` only says so, and the next " \
                     "workers have the change too. `:allow` says nothing. A Hash allows single changes, by the name " \
                     "that the event has as `subject`, or its first word: " \
                     "`fork_safety state: { allow: [\"umask\", \"env TZ\", \"signal\"] }`; `otherwise:` says what is " \
                     "done about the others, and is `:refuse` if it is left out. See " \
                     "[the audit](audit.md#what-a-request-has-changed).",
              example: 'fork_safety state: { allow: ["env TZ"] }'

      setting :fork_safety_trace,
              type: Types::Truth.new, default: false, within: :fork_safety, keyword: :trace,
              help: "Note where each IO is made, so that the audit can name the line.",
              notes: "It costs some microseconds for each IO object made, and nothing else."

      setting :keep_io,
              type: Types::Text.new("an address or a path, in which * stands for anything", /\A[\x21-\x7e]{1,1000}\z/),
              default: [].freeze, traits: %i[repeatable],
              help: "Sockets connected to this address, and files of this path, are shared on purpose. Repeatable.",
              notes: "The audit leaves them alone, as it does with what `Pando.keep_io` was told in code.",
              example: 'keep_io "10.0.0.5:8125"'

      setting :prepared_library,
              type: Types::Text.new("a gem's name", /\A[\w.-]{1,100}\z/), default: [].freeze, traits: %i[repeatable],
              help: "A library that needs something around forks, and gets it from your hooks. Repeatable.",
              notes: "It no longer refuses a refork and is not reported, see [libraries.md](libraries.md).",
              example: 'prepared_library "bunny"'
    end
  end
end
