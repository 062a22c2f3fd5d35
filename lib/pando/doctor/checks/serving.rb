# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # Requests that got no answer, or failed once there had been a fork.
      class Requests < Check
        # Ruby raises this in one thread when all of them wait for ever. It is the same fault as no answer.
        DEADLOCK = "fatal"
        FRAMES = 20 # stack frames in the details
        SLOW = "It was slow before any refork too. If that is normal, let the doctor wait longer with --patience."

        def findings = stuck + failed

        private

        def stuck
          evidence.sent.select { |sent| stuck?(sent) }.uniq(&:request).map do |sent|
            stack = sent.answer.stuck? ? sent.answer.stack : error_of(sent)[:stack]
            finding(:request_stuck, subject: sent.request.to_s, location: nearest(stack),
                                    message: "#{sent.request} got no answer: worker #{sent.slot} of generation " \
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
            finding(:request_failed, subject: request.to_s, severity: (:note if since.zero? && any_served?),
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
            finding(:process_lost, subject: "#{role} #{what}", location: event[:reason].to_s[%r{(/\S+:\d+)}, 1],
                                   message: "a #{role} of generation #{event[:generation]} #{happened}" \
                                            "#{" at #{event[:request]}" if event[:request]}: #{event[:reason]}")
          end.uniq(&:subject)
        end

        def unsafe
          evidence.events("worker.unsafe").uniq { |event| event[:reason] }.map do |event|
            location = event[:reason].to_s[CALLED_AT, 1]
            finding(:fork_unsafe, subject: location ? "no_longer_fork_safe!" : event[:reason], location: location,
                                  message: "a worker said that it must not be forked: #{event[:reason]}")
          end
        end

        def missing
          return [] unless evidence.missing

          failures = evidence.events("refork.refused", "generation.discarded", "refork.postponed")
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
            finding(:changed_state, subject: "#{one[:request]}: #{one[:key]}", advice: one[:advice],
                                    severity: severity_named(one[:severity]),
                                    message: "#{one[:request]} changes its process: #{one[:change]}")
          end
        end

        def reported
          libraries = evidence.libraries.to_h[:findings].to_a.filter_map { |one| revive(one) }
          lazy = evidence.lazy_state.to_h[:findings].to_a
          libraries + lazy.filter_map { |one| revive(one, severity_of(one[:location])) }
        end

        # @param severity [Symbol, nil] replaces the reported one
        def revive(one, severity = nil)
          kind = ForkSafety::Finding::KINDS.keys.find { |name| name.to_s == one[:kind] } or return
          finding(kind, subject: one[:subject].to_s, message: one[:message].to_s, location: one[:location],
                        advice: one[:advice], severity: severity || severity_named(one[:severity]),
                        details: one[:details] || {})
        end

        def severity_named(name) = ForkSafety::Finding::SEVERITIES.find { |one| one.to_s == name }
      end
    end
  end
end
