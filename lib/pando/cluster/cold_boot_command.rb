# frozen_string_literal: true

module Pando
  module Cluster
    # The command of a cold boot, and the environment variables that it needs at the very start, such as LD_PRELOAD for
    # an allocator. The application must not see them: {.settle}, in the new image, restores the former values.
    class ColdBootCommand
      CHANGED = "PANDO_CHANGED"
      FORMER = "PANDO_FORMER_"

      attr_reader :command

      # Called in the new image, before any code of the application.
      def self.settle(environment = ENV)
        environment.delete(CHANGED).to_s.split.each do |name|
          former = environment.delete("#{FORMER}#{name}")
          former ? environment[name] = former : environment.delete(name)
        end
        nil
      end

      def initialize(command, variables = {})
        @command = command
        @variables = variables
      end

      # @param own [Hash{String => String}] of the process that executes the command
      def environment(own = ENV.to_h)
        return own if @variables.empty?

        former = own.slice(*@variables.keys).transform_keys { |name| "#{FORMER}#{name}" }
        own.merge(former, @variables, CHANGED => @variables.keys.join(" "))
      end
    end
  end
end
