# frozen_string_literal: true

module Pando
  module Cluster
    class Upgrade
      # The arguments and the environment that a process was executed with.
      #
      # @api private
      class ProcessImage
        include Brief

        # @return [Array<String>]
        attr_reader :arguments
        # @return [Hash{String => String}]
        attr_reader :variables

        # The image of this process, which must not have set its title yet.
        def self.current
          arguments, variables = %w[cmdline environ].map { |name| File.binread("/proc/self/#{name}").split("\0", -1) }
          new(arguments[0..-2], variables.map { |text| text.split("=", 2) }.select { |pair| pair.size == 2 }.to_h)
        end

        # @param document [State, Document]
        # @return [ProcessImage]
        # @raise [Unreadable]
        def self.from_state(document)
          new(document.all("argument").map { |record| record.bytes(:value) },
              document.all("variable").to_h { |record| [record.bytes(:name), record.bytes(:value)] })
        end

        def initialize(arguments, variables)
          @arguments = arguments
          @variables = variables
        end

        def to_state(state)
          arguments.each { |value| state.add("argument", value: value) }
          variables.each { |name, value| state.add("variable", name: name, value: value) }
        end

        # Executes this image in the current process.
        # @param more [Hash{String => String, nil}] variables
        # @raise [SystemCallError] the kernel cannot execute it
        def execute(more)
          program, *rest = arguments
          exec(variables.merge(more).compact, [program, program], *rest, unsetenv_others: true, close_others: false)
        end
      end
    end
  end
end
