# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # Processes that died or must not be forked, generations that did not come.
      #
      # @api private
      class Serving < Check
        ENDS = %w[worker.lost mold.lost worker.failed mold.failed].freeze
        REASONS = 3 # the last ones
        CALLED_AT = /\Acalled at (\S+:\d+)/

        def findings = lost + unsafe + missing

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
