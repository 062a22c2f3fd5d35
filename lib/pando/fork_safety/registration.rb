# frozen_string_literal: true

require "pando/fork_safety/callbacks"
require "pando/fork_safety/threads/background_thread"

module Pando
  # What a library registers once, when it is loaded.
  module ForkSafety
    class << self
      # Registers callbacks around each fork of this process and its descendants: Kernel#fork,
      # Process.fork, IO.popen("-"), Process.daemon and the server's forks. `before` runs in reverse
      # order of registration, the other two in order of registration.
      #
      # A second registration under the same key replaces the first.
      #
      # @param key [Object] compared by ==; a Symbol or String is shown in messages
      # @param before [#call, nil] in the forking process. If it raises, there is no fork: Pando calls the `parent`
      #   of those that had already run, and fork raises {ForkRefused}
      # @param parent [#call, nil] in the forking process afterwards, also when the fork failed
      # @param child [#call, nil] in the new process, never in the middle one of a double fork
      # @return [nil]
      def register(key, before: nil, parent: nil, child: nil)
        callables = { before: before, parent: parent, child: child }
        unless callables.values.any? && callables.values.compact.all? { |one| one.respond_to?(:call) }
          raise ArgumentError, "register(#{key.inspect}) needs something to call: before:, parent: or child:"
        end

        Callbacks.register(Callbacks::Entry.new(key, callables, caller(1, 1).first[/\A.*:\d+/]))
      end

      # @param key [Object]
      # @return [Boolean] whether the key was registered
      def unregister(key) = Callbacks.unregister(key)

      # @param key [Object]
      # @return [Boolean]
      def registered?(key) = Callbacks.registered?(key)

      # Sets the block that is called when a callback raises after a fork. Without a block, Pando warns on stderr.
      #
      # @yieldparam failure [CallbackFailed]
      # @return [nil]
      def on_callback_failure(&block) = Callbacks.report_to(&block)

      # Starts a thread that is stopped before each fork and started again on both sides of it.
      #
      # With a key, it replaces the thread that has this key: Pando stops that thread, and hands its queue on.
      #
      # @param (see BackgroundThread#initialize)
      # @yieldparam thread [BackgroundThread]
      # @return [BackgroundThread]
      # @raise (see BackgroundThread#initialize)
      # @raise [ThreadNotStopped] the thread to be replaced did not end
      def thread(name, **options, &block)
        thread = BackgroundThread.new(name, **options, &block)
        Callbacks.in_turn { install(thread) }
        thread
      end

      # @return [Array<BackgroundThread>] all registered threads
      def threads = Callbacks.threads

      private

      def install(thread)
        former = threads.find { |other| other.key == thread.key }
        left = former ? former.stop : []
        Callbacks.register(Callbacks::Entry.new(thread.key, thread.callbacks, thread.location, thread: thread))
        left.each { |item| thread.push(item) }
        thread.start
      end
    end
  end
end
