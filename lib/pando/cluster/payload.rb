# frozen_string_literal: true

module Pando
  module Cluster
    # What a cluster carries: the layer above subclasses this. One instance
    # lives in the mold and is inherited by all that is forked from it.
    class Payload
      # @return [Options]
      def options = raise(NoMethodError, "#{self.class} must say its options")

      # Loads the application. Runs once, in the mold of a cold boot.
      def load; end

      # What it would be if the server were started now; for a reload.
      # @return [#command, #kept, #give_up] and what #adopt takes
      # @raise [Pando::Error, SystemCallError] it could not
      def renew = raise(Pando::Error, "there is nothing to reload")

      # Takes a renewal into use: #options and hooks are its own from now on.
      # @param _renewal [Object] as #renew returned it
      def adopt(_renewal); end

      # What a reactor and its workers share, made in the monitor:
      # descriptors / lanes / lane / fork / report / in_flight / state (see HTTP::ReactorSetup).
      # @return [Object, nil] nil: workers accept by themselves (direct mode)
      def reactor = nil

      # @param _listeners [Array<TCPServer, UNIXServer>]
      # @param _channel [IO, nil] to the reactor, nil in direct mode
      # @return [#start, #sources, #ready, #idle, #stop] what a worker does
      def work(_listeners, _channel) = raise(NoMethodError, "#{self.class} must say what its workers do")

      # @raise [HookError]
      def run_hook(name, *arguments); end

      def hook?(_name) = false

      # Runs in every forked process before anything else of the payload.
      def after_fork; end

      # Tells the payload which role this process now has.
      # @param _role [Mold, Worker, Service]
      def attach(_role); end

      # Runs the user's loop; returns when it ends.
      def run_service(_index, _service); end
    end
  end
end
