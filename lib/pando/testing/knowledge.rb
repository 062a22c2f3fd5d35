# frozen_string_literal: true

require "pando/testing/places"

module Pando
  module Testing
    # Runs the other parts of fork-safety around a fork, and collects their findings: the callbacks of libraries, the
    # library table, the audit. Each part is optional.
    #
    # @api private
    module Knowledge
      # The suite's own connections, to the process that distributes tests.
      HARMLESS = %r{/drb/}
      private_constant :HARMLESS

      class << self
        # Call it before the app is loaded.
        def begin
          audit&.begin
          audit&.trace
          libraries&.prepare_environment
          nil
        end

        # @yield forks; the child must call {settle}
        # @return the return value of the block
        def around_fork(&fork)
          audit&.census
          held = callbacks ? -> { callbacks.hold_child(&fork) } : fork
          libraries ? libraries.around_fork(defer: true, &held) : held.call
        end

        # Call it in the child.
        # @raise [Error] a callback failed
        def settle
          libraries&.settle
          callbacks&.settle
          nil
        end

        # Call it in a new generation. An inherited connection that no process uses is not a fault yet, so each finding
        # is a warning at most. Strict mode sees which process uses it.
        #
        # @param own [Array<IO, Integer>] descriptors of Pando or of the suite
        # @param config [Config, nil] its `keep_io` and `prepared_library` apply
        # @return [Array<ForkSafety::Finding>]
        def findings(generation, own, config = nil)
          found = []
          found.concat(libraries.findings(prepared: config&.prepared_library.to_a)) if generation == 1 && libraries
          found.concat(audit.run(forks: false, own: own, keep: config&.keep_io.to_a).findings) if audit
          found.reject { |one| one.severity == :note || suite?(one.location) }.map { |one| as_warning(one) }
        end

        private

        def callbacks = part(:Callbacks, "callbacks")
        def libraries = part(:Libraries, "libraries")
        def audit = part(:Audit, "audit")

        def part(name, file)
          @parts ||= {}
          @parts.fetch(name) { @parts[name] = present?(file) && ForkSafety.const_get(name) }
        end

        def present?(file)
          require "pando/fork_safety/#{file}"
          true
        rescue LoadError => e
          raise unless e.path == "pando/fork_safety/#{file}"
        end

        def suite?(location)
          location && (Places.suite?(location[/\A(.+):\d+\z/, 1] || location) || HARMLESS.match?(location))
        end

        def as_warning(finding)
          ForkSafety::Finding.new(finding.kind, **finding.to_h.except(:kind), severity: :warning)
        end
      end
    end
  end
end
