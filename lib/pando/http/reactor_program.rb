# frozen_string_literal: true

require "pando/events"
require "pando/native"

module Pando
  module HTTP
    # How the process that is the reactor comes to life: by executing the program
    # that is built beside the extension, which has nothing of the monitor's memory;
    # as a fork of the monitor where that cannot be.
    #
    # The program is opened once, so that a server goes on with the one that it was
    # built with, whatever becomes of the file.
    #
    # Owned by {ReactorSetup}.
    #
    # @api private
    class ReactorProgram
      NAME = "pando-reactor"

      # @return [String] where it is installed
      def self.path = File.join(File.dirname($LOADED_FEATURES.grep(%r{/pando_ext\.so\z}).last), NAME)

      # @param channel [#epoch] that of the reactors which are started here
      def initialize(channel, path = self.class.path)
        @channel = channel
        @file = File.open(path)
      rescue SystemCallError => e
        @obstacle = e.message
      end

      # @param arguments as Reactor.fork takes them
      # @return [Integer] its pid
      # @raise [SystemCallError] the kernel gives no process
      def start(*arguments)
        execute(arguments) || Reactor.fork(*arguments).tap { Events.emit("reactor.fallback", reason: @obstacle) }
      end

      private

      # @return [Integer, nil] nil: it cannot be
      def execute(arguments)
        return unless @file
        return refuse("#{NAME} ended before it had begun") if @epoch == @channel.epoch

        epoch = @channel.epoch
        Reactor.spawn(@file, *arguments).tap { @epoch = epoch } # a reactor that comes to life makes it another
      rescue SystemCallError => e
        refuse(e.message)
      end

      def refuse(reason)
        @obstacle = reason
        nil
      end
    end
  end
end
