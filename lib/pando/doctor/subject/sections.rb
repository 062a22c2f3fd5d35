# frozen_string_literal: true

module Pando
  module Doctor
    module Subject
      # What other parts of Pando know of a mold, from inside: the knowledge of libraries. Each is
      # asked if it is there. The audit is not among them: it judges what is open when a fork is
      # made, while the doctor sees what is still shared once the children have served.
      #
      # @api private
      module Sections
        # Where it is loaded from, its constant in ForkSafety, and how its findings are had.
        ALL = {
          libraries: ["pando/fork_safety/libraries", :Libraries, lambda { |part, config|
            { findings: part.findings(prepared: config.prepared_library), entries: part.loaded.map(&:to_h) }
          }]
        }.freeze

        # @param wire [Wire] @param config [Config] the application's
        # @return [nil]
        def self.tell(wire, config)
          ALL.each do |name, (file, constant, ask)|
            next unless available?(file) && ForkSafety.const_defined?(constant)

            told = ask.call(ForkSafety.const_get(constant), config)
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
