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
          libraries: ["pando/fork_safety/libraries", :Libraries, ->(part) { part.findings }],
          audit: ["pando/fork_safety/audit", :Audit, ->(part) { part.run.findings }]
        }.freeze

        # @param wire [Wire]
        # @return [nil]
        def self.tell(wire)
          ALL.each do |name, (file, constant, ask)|
            next unless available?(file) && ForkSafety.const_defined?(constant)

            part = ForkSafety.const_get(constant)
            wire.tell(section: name, pid: Process.pid, findings: ask.call(part).map(&:to_h))
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
