# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # What was found inside the processes: the libraries they have loaded, the lazily loaded state. Each mold tells of
      # its libraries; the last one has loaded those too that requests load.
      #
      # @api private
      class Sections < Check
        def findings
          told(evidence.last_sections) { nil } +
            told(evidence.lazy) { |location| severity_of(location) }
        end

        private

        # @yieldparam location [String] @yieldreturn [Symbol, nil] another severity than was told
        def told(facts)
          facts.flat_map { |fact| fact[:findings].to_a }.filter_map { |one| revive(one, yield(one[:location])) }
        end

        def revive(one, other)
          kind = ForkSafety::Finding::KINDS.keys.find { |name| name.to_s == one[:kind] } or return
          severity = other || ForkSafety::Finding::SEVERITIES.find { |name| name.to_s == one[:severity] }
          finding(kind, subject: one[:subject].to_s, message: one[:message].to_s, location: one[:location],
                        advice: one[:advice], severity: severity, details: one[:details] || {})
        end
      end
    end
  end
end
