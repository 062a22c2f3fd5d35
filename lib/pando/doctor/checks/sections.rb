# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # What other parts of Pando found inside the processes: the audit, the knowledge of libraries,
      # the lazily loaded state.
      #
      # @api private
      class Sections < Check
        def findings
          told = evidence.facts.select { |fact| fact.key?(:section) } + evidence.lazy
          told.flat_map { |fact| fact[:findings].to_a }.filter_map { |one| revive(one) }
        end

        private

        def revive(one)
          kind = ForkSafety::Finding::KINDS.keys.find { |name| name.to_s == one[:kind] } or return
          severity = ForkSafety::Finding::SEVERITIES.find { |name| name.to_s == one[:severity] }
          finding(kind, subject: one[:subject].to_s, message: one[:message].to_s, location: one[:location],
                        advice: one[:advice], severity: severity, details: one[:details] || {})
        end
      end
    end
  end
end
