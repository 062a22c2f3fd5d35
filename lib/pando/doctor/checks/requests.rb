# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # Requests that got no answer, or failed once there had been a fork.
      #
      # @api private
      class Requests < Check
        # Where all threads wait for ever, Ruby raises this in one of them: the same fault as silence, seen earlier.
        DEADLOCK = "fatal"
        FRAMES = 20 # of a stack that is shown
        SLOW = "It was so before any refork: if it takes long by itself, let the doctor wait for it with --patience."

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
          return "waits for what no other thread will do" unless sent.answer.stuck?

          { lock: "waits for a lock", sleep: "was slow: it slept at #{evidence.local(line)}" }
            .fetch(sent.answer.stuck_in, "stands still")
        end

        # Before any refork: unless it waits for a lock, which a thread that the first fork has ended may have held, it
        # may be as slow without any fork.
        def judgement(sent)
          return {} unless sent.generation.zero? && sent.answer.stuck? && sent.answer.stuck_in != :lock

          { severity: :note, advice: SLOW }
        end

        # One that failed before a refork as well has nothing to do with it; but where all do, nothing was seen.
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

        # @return [Hash, nil] what the application raised, see Subject::Wire
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
    end
  end
end
