# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # Handlers that the application set when it was loaded, and that workers do not have.
      #
      # @api private
      class Signals < Check
        def findings
          lost = evidence.snapshots(:served).flat_map do |worker|
            worker[:traps][:loaded].reject { |set| set[:ours] || holds?(worker, set) }
          end
          lost.uniq { |set| set.values_at(:signal, :location) }.map { |set| report(set) }
        end

        private

        def holds?(worker, set)
          now = worker[:traps][:now].find { |one| one[:signal] == set[:signal] }
          number = Signal.list[set[:signal]]
          !now.nil? && !now[:ours] && (number.nil? || number.zero? || worker[:caught].hex[number - 1] == 1)
        end

        def report(set)
          name = "SIG#{set[:signal]}"
          finding(:signal_handler_lost, subject: name, location: set[:location], severity: severity_of(set[:location]),
                                        message: "the application's handler of #{name} does not hold in workers")
        end
      end
    end
  end
end
