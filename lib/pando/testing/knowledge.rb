# frozen_string_literal: true

require "pando/testing/places"

module Pando
  module Testing
    # What the other parts of fork-safety do around a fork, and say after it: the callbacks of libraries, what is known
    # of libraries, the audit. Each as far as it is there.
    #
    # @api private
    module Knowledge
      # The suite's own connections: to the process that hands out tests.
      HARMLESS = %r{/drb/}
      private_constant :HARMLESS

      class << self
        # Before the app is loaded.
        # @return [nil]
        def begin
          audit&.begin
          audit&.trace
          libraries&.prepare_environment
          nil
        end

        # @yield forks; the child is to {settle}
        # @return what the block returns
        def around_fork(&fork)
          audit&.census
          held = callbacks ? -> { callbacks.hold_child(&fork) } : fork
          libraries ? libraries.around_fork(defer: true, &held) : held.call
        end

        # In the child.
        # @return [nil]
        # @raise [Error] a callback failed
        def settle
          libraries&.settle
          callbacks&.settle
          nil
        end

        # In a new generation. A connection that it has inherited and not used is no fault yet, so nothing here is
        # more than a warning; strict mode sees who uses it.
        #
        # @param generation [Integer]
        # @param own [Array<IO, Integer>] descriptors that are Pando's or the suite's
        # @param config [Config, nil] whose `keep_io` and `prepared_library` hold
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
