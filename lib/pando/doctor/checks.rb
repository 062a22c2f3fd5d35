# frozen_string_literal: true

require "pando/fork_safety/finding"

module Pando
  module Doctor
    # Turns the evidence of an examination into findings. Runs in the command's process.
    module Checks
      # Descriptors is in shared_descriptors.rb, with all that it needs.
      # @return [Array<ForkSafety::Finding>]
      def self.run(evidence)
        [Descriptors, Inheritance, Requests, Serving].flat_map { |check| check.new(evidence).findings }
      end

      # The base of all checks: a check is a class, used as `new(evidence).findings`.
      class Check
        def initialize(evidence)
          @evidence = evidence
        end

        private

        attr_reader :evidence

        def finding(kind, **facts) = ForkSafety::Finding.new(kind, **facts)

        # Findings inside a library are notes: the user cannot fix them, so they must not fail a build.
        # @param severity [Symbol, nil] for the application's own code; nil: the kind's default
        def severity_of(location, severity = nil) = evidence.own?(location) ? severity : :note
      end

      # What a forked child inherits wrongly or not at all: threads, held locks, signal handlers, random number
      # generators, pids in constants, at_exit handlers, and files that it deletes though an ancestor made them.
      class Inheritance < Check
        def findings
          lost_threads + native_threads + held_locks + deleted_files + exit_handlers + lost_signal_handlers +
            random_generators + pid_constants
        end

        # @return [Array<ForkSafety::Finding>] threads that C code started, which a fork loses
        def native_threads
          missing(:natives) { |name, alive| alive.include?(name) }.uniq.map do |name|
            location = evidence.origin(:thread) { |one| one[:comm] == name } || evidence.origin(:thread) { true }
            finding(:native_thread, subject: "native thread #{name}", location: location, severity: :error,
                                    message: "a thread of native code (#{name}) runs where a fork is made, and in no " \
                                             "child that has served")
          end.uniq(&:location)
        end

        private

        # Ruby threads that a fork ended and that no child started again.
        def lost_threads
          gone = missing(:threads, evidence.forkers) do |thread, alive|
            thread[:location].nil? || thread[:excused] || evidence.ours?(thread[:location]) ||
              alive.any? { |one| one[:location] == thread[:location] }
          end
          gone.uniq { |thread| thread[:location] }.map do |thread|
            name = thread[:name] ? "thread #{thread[:name]}" : "a thread"
            finding(:lost_thread, subject: name, location: thread[:location], message: thread[:message],
                                  advice: thread[:advice])
          end
        end

        # What a forker had, and none of its children that have served.
        # @param list [Symbol] key of a snapshot @param forkers [Array<Hash>] their snapshots
        # @yieldparam one [Object] of the forker's list @yieldparam alive [Array] the lists of all its children
        # @yieldreturn [Object] truthy: it is not missing
        def missing(list, forkers = evidence.snapshots(:fork))
          children = {}.compare_by_identity
          forkers.each { |forker| children[forker] = [] }
          evidence.each_fork { |forker, child| children.fetch(forker) << child[list] }
          children.flat_map { |forker, lists| forker[list].reject { |one| yield one, lists.flatten } }
        end

        # In the child the thread that holds the lock is gone, and the data that the lock guards is half changed.
        def held_locks
          held = evidence.snapshots(:fork).flat_map { |fact| fact[:locks] }.uniq
          held.reject { |lock| evidence.ours?(lock[:location]) }.map do |lock|
            name = "a #{lock[:type]}"
            finding(:lock_held, subject: name, location: lock[:location],
                                message: "#{name} is held by a background thread while the process is forked")
          end
        end

        def deleted_files
          evidence.records(:deletion).uniq { |record| record[:location] }.map do |record|
            name = "file #{File.basename(record[:path]).gsub(/\d{4,}[\w-]*/, "*")}"
            finding(:file_deleted, subject: name, location: record[:location],
                                   message: "#{name}, which an ancestor made, was deleted by a child at its end")
          end
        end

        def exit_handlers
          evidence.records(:exit_handler).uniq { |record| record[:location] }.map do |record|
            finding(:exit_handler, subject: "an at_exit handler", location: record[:location],
                                   severity: severity_of(record[:location]),
                                   message: "an at_exit handler ran in processes that did not register it")
          end
        end

        # Handlers that the application set when it was loaded, and that workers do not have.
        def lost_signal_handlers
          lost = evidence.snapshots(:served).flat_map do |worker|
            worker[:traps][:loaded].reject { |set| set[:ours] || handled?(worker, set) }
          end
          lost.uniq { |set| set.values_at(:signal, :location) }.map do |set|
            name = "SIG#{set[:signal]}"
            finding(:signal_handler_lost, subject: name, location: set[:location],
                                          severity: severity_of(set[:location]),
                                          message: "the application's handler of #{name} does not hold in workers")
          end
        end

        def handled?(worker, set)
          now = worker[:traps][:now].find { |one| one[:signal] == set[:signal] }
          number = Signal.list[set[:signal]]
          !now.nil? && !now[:ours] && (number.nil? || number.zero? || worker[:caught].hex[number - 1] == 1)
        end

        def random_generators
          draws = []
          evidence.each_fork do |forker, child|
            drawn(forker, child).each { |one| draws << [one[:location], child[:pid]] }
          end
          draws.uniq.group_by(&:first).map { |location, all| random_generator(location, all.size) }
        end

        # @return [Array<Hash>] generators that the child has inherited and drawn from
        def drawn(forker, child)
          before = forker[:generators].to_h { |one| [one[:id], one[:state]] }
          child[:generators].select { |one| before.key?(one[:id]) && before[one[:id]] != one[:state] }
        end

        # Libraries often use theirs to spread delays, where repeated numbers do no harm.
        def random_generator(location, children)
          severity = :error if children > 1 && evidence.own?(location)
          finding(:random_copied, subject: "a Random object", location: location, severity: severity,
                                  message: "a Random object was made before the fork and drawn from in " \
                                           "#{children == 1 ? "one process" : "#{children} processes"} after it: " \
                                           "each draws the same numbers")
        end

        def pid_constants
          held = evidence.snapshots(:served).flat_map { |fact| fact[:constants] }.uniq
          held.reject { |one| evidence.ours?(one[:location]) }.map do |one|
            finding(:pid_cached, subject: one[:name], location: one[:location],
                                 severity: severity_of(one[:location], one[:text] ? :error : :warning),
                                 message: "the constant #{one[:name]} #{pid_message(one)}")
          end
        end

        # An application may compare a pid that it has kept, to see whether it was forked. A text is shown or sent.
        def pid_message(one)
          return "has the pid of another process in its text" if one[:text]

          "is the pid of another process, which is right only if Process.pid is compared with it"
        end
      end

      # Requests that got no answer, or failed once there had been a fork.
      class Requests < Check
        # Ruby raises this in one thread when all of them wait for ever. It is the same fault as no answer.
        DEADLOCK = "fatal"
        FRAMES = 20 # stack frames in the details
        BROKEN = "It fails without any fork: a database or a setting may be missing here. See the error, or leave " \
                 "the request out (--requests FILE)."
        SLOW = "It was slow before any refork too. If that is normal, let the doctor wait longer with --patience."

        def findings = stuck + failed

        private

        def stuck
          evidence.sent.select { |sent| stuck?(sent) }.uniq(&:request).map do |sent|
            stack = sent.answer.stuck? ? sent.answer.stack : error_of(sent)[:stack]
            finding(:request_stuck, subject: sent.request.to_s, location: nearest(stack),
                                    message: "#{sent.request} got no response: worker #{sent.slot} of generation " \
                                             "#{sent.generation} #{waits(sent, nearest(stack))}",
                                    details: { stack: stack.first(FRAMES) }, **judgement(sent))
          end
        end

        def stuck?(sent) = sent.answer.stuck? || error_of(sent)&.fetch(:class) == DEADLOCK

        def waits(sent, line)
          return "waits for something that no other thread will do" unless sent.answer.stuck?

          { lock: "waits for a lock", sleep: "was slow: it slept at #{evidence.local(line)}" }
            .fetch(sent.answer.stuck_in, "stands still")
        end

        # A request that is slow before any refork may be as slow without a fork. A lock is different: a thread that the
        # first fork ended may have held it.
        def judgement(sent)
          return {} unless sent.generation.zero? && sent.answer.stuck? && sent.answer.stuck_in != :lock

          { severity: :note, advice: SLOW }
        end

        # A request that fails before any refork too is a note, unless all fail: then the examination has shown nothing.
        def failed
          evidence.sent.select { |sent| failed?(sent) }.group_by(&:request).map do |request, all|
            since = all.map(&:generation).min
            error = error_of(all.first)
            finding(:request_failed, subject: request.to_s, **(since.zero? ? { advice: BROKEN } : {}),
                                     severity: (:note if since.zero? && any_served?),
                                     location: error && nearest(error[:stack]),
                                     message: "#{request} #{outcome(all.first, error)} in generation #{since}" \
                                              "#{", and did not before" unless since.zero?}")
          end
        end

        def any_served? = evidence.sent.any? { |sent| !stuck?(sent) && !failed?(sent) }
        def failed?(sent) = !stuck?(sent) && (sent.answer.status.nil? || sent.answer.status >= 500)

        def outcome(sent, error)
          return "was not answered" unless sent.answer.status

          "was answered with #{sent.answer.status}#{" (#{error[:class]}: #{error[:message]})" if error}"
        end

        # @return [Hash, nil] the application's exception, see Subject::Wire
        def error_of(sent)
          worker = [sent.generation, sent.slot]
          request = [sent.request.verb, sent.request.path]
          evidence.events("request.failed").find do |event|
            event.values_at(:generation, :slot) == worker && event.values_at(:method, :path) == request
          end&.fetch(:error)
        end

        # The application's own line rather than a library's.
        def nearest(stack)
          real = stack.reject { |line| evidence.ours?(line) || line.start_with?("<internal:") || line.end_with?(":0") }
          real.find { |line| evidence.own?(line) } || real.first
        end
      end

      # Processes that died or refused to be forked, reforks that failed, descriptors that leak, requests that change
      # their process, and the findings that processes reported about themselves (libraries, lazy state).
      class Serving < Check
        ENDS = %w[worker.lost mold.lost worker.failed mold.failed].freeze
        REASONS = 3 # the last ones are shown
        CALLED_AT = /\Acalled at (\S+:\d+)/

        def findings = lost + unsafe + missing + growth + changed_states + reported

        private

        def lost
          killed = evidence.sent.map { |sent| sent.answer.killed }
          evidence.events(*ENDS).reject { |event| killed.include?(event[:pid]) }.map do |event|
            role, what = event[:event].split(".")
            happened = what == "lost" ? "died" : "failed"
            finding(:process_lost, subject: "#{role} #{what}", location: location_in(event[:reason].to_s),
                                   message: "a #{role} of generation #{event[:generation]} #{happened}" \
                                            "#{" at #{event[:request]}" if event[:request]}: #{event[:reason]}")
          end.uniq(&:subject)
        end

        # "no key (KeyError) at config/initializers/pay.rb:7: status 1", or the line in the message of a failed hook.
        def location_in(reason) = reason[/ at (\S+:\d+)(?=:|\z)/, 1] || reason[%r{(/\S+:\d+)}, 1]

        def unsafe
          evidence.events("worker.unsafe").uniq { |event| event[:reason] }.map do |event|
            location = event[:reason].to_s[CALLED_AT, 1]
            finding(:fork_unsafe, subject: location ? "no_longer_fork_safe!" : event[:reason], location: location,
                                  message: "a worker said that it must not be forked: #{event[:reason]}")
          end
        end

        def missing
          return [] unless evidence.missing

          failures = evidence.events("refork.refused", "refork.failed", "refork.postponed")
          reasons = failures.filter_map { |one| one[:reason] }.uniq.last(REASONS)
          reasons << "no reason was given" if reasons.empty?
          [finding(:refork_failed, subject: "generation #{evidence.missing}",
                                   message: "generation #{evidence.missing} did not come: #{reasons.join("; ")}")]
        end

        # Descriptors whose number grows with each round of the same requests.
        def growth
          totals = evidence.counts.map { |fact| fact[:count] }
          return [] unless totals.size >= 3 && growing?(totals)

          message = "a worker has #{totals[-1] - totals[-2]} more descriptors open after each round of requests"
          [finding(:growing_descriptors, subject: "descriptors of a worker", location: growing_line, severity: :error,
                                         message: message, details: { counts: totals })]
        end

        def growing?(numbers) = numbers.each_cons(2).all? { |before, after| after > before }

        # Of the lines whose number of IOs grows, the one that has most.
        def growing_line
          lines = evidence.counts.map { |fact| fact[:lines].transform_keys(&:to_s) }
          grown = lines.last.keys.select { |line| growing?(lines.map { |one| one.fetch(line, 0) }) && line != "" }
          grown.max_by { |line| lines.last[line] } || evidence.origin(:descriptor) { true }
        end

        # Requests that change the process's state in the kernel. A change that a library makes in each worker on first
        # use is a note.
        def changed_states
          changes = evidence.records(:changed_state).uniq { |one| one.values_at(:request, :key) }
          changes.map do |one|
            ForkSafety::Finding.parse(kind: :changed_state, subject: "#{one[:request]}: #{one[:key]}",
                                      message: "#{one[:request]} changes its process: #{one[:change]}",
                                      **one.slice(:severity, :advice))
          end
        end

        def reported
          libraries, lazy = [evidence.libraries, evidence.lazy_state].map do |report|
            report.to_h[:findings].to_a.map { |one| ForkSafety::Finding.parse(one) }
          end
          libraries + lazy.map { |one| one.with(severity: severity_of(one.location, one.severity)) }
        end
      end
    end
  end
end
