# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # Requests that got no answer or failed once there had been a fork, processes that died,
      # generations that did not come.
      #
      # @api private
      class Serving < Check
        ENDS = %w[worker.lost mold.lost worker.failed mold.failed].freeze
        REASONS = 3 # the last ones
        CALLED_AT = /\Acalled at (\S+:\d+)/

        def findings = stuck + failed + lost + unsafe + missing

        private

        def stuck
          evidence.sent.select { |sent| sent.answer.stuck? }.uniq(&:request).map do |sent|
            where = sent.answer.stuck_in == :lock ? "waits for a lock" : "stands still"
            finding(:request_stuck, subject: sent.request.to_s, location: nearest(sent.answer.stack),
                                    message: "#{sent.request} got no answer: worker #{sent.slot} of generation " \
                                             "#{sent.generation} #{where}",
                                    details: { stack: sent.answer.stack.first(20) })
          end
        end

        # The application's own line rather than a library's.
        def nearest(stack)
          real = stack.reject { |line| evidence.ours?(line) || line.start_with?("<internal:") || line.end_with?(":0") }
          real.find { |line| evidence.own?(line) } || real.first
        end

        # One that failed before a refork as well has nothing to do with it; but where all do, nothing was seen.
        def failed
          evidence.sent.select { |sent| failed?(sent) }.group_by(&:request).map do |request, all|
            since = all.map(&:generation).min
            finding(:request_failed, subject: request.to_s, severity: (:note if since.zero? && any_served?),
                                     message: "#{request} #{outcome(all.first)} in generation #{since}" \
                                              "#{", and did not before" unless since.zero?}")
          end
        end

        def any_served? = evidence.sent.any? { |sent| !sent.answer.stuck? && !failed?(sent) }
        def failed?(sent) = !sent.answer.stuck? && (sent.answer.status.nil? || sent.answer.status >= 500)
        def outcome(sent) = sent.answer.status ? "was answered with #{sent.answer.status}" : "was not answered"

        def lost
          killed = evidence.sent.map { |sent| sent.answer.killed }
          evidence.events(*ENDS).reject { |event| killed.include?(event[:pid]) }.map do |event|
            role, what = event[:event].split(".")
            happened = what == "lost" ? "died" : "failed"
            finding(:process_lost, subject: "#{role} #{what}", location: event[:reason].to_s[%r{(/\S+:\d+)}, 1],
                                   message: "a #{role} of generation #{event[:generation]} #{happened}: " \
                                            "#{event[:reason]}")
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

          told = evidence.events("refork.refused", "generation.discarded", "refork.postponed")
          reasons = told.filter_map { |one| one[:reason] }.uniq.last(REASONS)
          reasons << "nobody said why" if reasons.empty?
          [finding(:refork_failed, subject: "generation #{evidence.missing}",
                                   message: "generation #{evidence.missing} did not come: #{reasons.join("; ")}")]
        end
      end
    end
  end
end
