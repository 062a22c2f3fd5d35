# frozen_string_literal: true

module Pando
  module Cluster
    # What the monitor executes for a cold boot, and the environment variables that its very start needs, such as one
    # that makes a library be loaded before all others. They are not the application's, and its own children must not
    # have them: {.settle}, in the new image, puts back what there was.
    #
    # @api private
    class ColdBootCommand
      CHANGED = "PANDO_CHANGED"
      FORMER = "PANDO_FORMER_"

      # @return [Array<String>] the executable and arguments
      attr_reader :command

      # @param command [Array<String>, ColdBootCommand]
      # @return [ColdBootCommand]
      def self.of(command) = command.is_a?(self) ? command : new(command)

      # In the new image, before anything of the application.
      # @return [nil]
      def self.settle(environment = ENV)
        environment.delete(CHANGED).to_s.split.each do |name|
          former = environment.delete("#{FORMER}#{name}")
          former ? environment[name] = former : environment.delete(name)
        end
        nil
      end

      # @param variables [Hash{String => String}]
      def initialize(command, variables = {})
        @command = command
        @variables = variables
      end

      # @param own [Hash{String => String}] of the process that executes it
      # @return [Hash{String => String}]
      def environment(own = ENV.to_h)
        return own if @variables.empty?

        former = own.slice(*@variables.keys).transform_keys { |name| "#{FORMER}#{name}" }
        own.merge(former, @variables, CHANGED => @variables.keys.join(" "))
      end
    end
  end
end
