# frozen_string_literal: true

module Pando
  module Doctor
    module Subject
      # Checks that other parts of Pando make inside a mold: what the audit and the knowledge of
      # libraries find there. Each is asked if it is there.
      #
      # @api private
      module Sections
        # Where it is loaded from, its constant in ForkSafety, and how its findings are had.
        ALL = {
          libraries: ["pando/fork_safety/libraries", :Libraries, lambda { |part, _own|
            { findings: part.findings, entries: part.loaded.map(&:to_h) }
          }],
          audit: ["pando/fork_safety/audit", :Audit, ->(part, own) { { findings: part.run(own: own).findings } }]
        }.freeze

        # @param wire [Wire]
        # @param own [Array<Integer>] descriptors that are no affair of the application's
        # @return [nil]
        def self.tell(wire, own)
          ALL.each do |name, (file, constant, ask)|
            next unless available?(file) && ForkSafety.const_defined?(constant)

            told = ask.call(ForkSafety.const_get(constant), own)
            wire.tell(section: name, pid: Process.pid, **told, findings: told[:findings].map(&:to_h))
          rescue StandardError => error
            wire.tell(section: name, pid: Process.pid, findings: [], error: "#{error.message} (#{error.class})")
          end
          nil
        end

        def self.available?(file)
          require file
          true
        rescue LoadError
          false
        end
        private_class_method :available?
      end
    end
  end
end
