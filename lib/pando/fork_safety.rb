# frozen_string_literal: true

require "pando/native"
require "pando/fork_safety/status"
require "pando/fork_safety/descriptors"
require "pando/fork_safety/self_check"
require "pando/fork_safety/callbacks"
require "pando/fork_safety/threads/background_thread"
require "pando/fork_safety/audit"

module Pando
  # Prepares a process for a fork, and its child for work. Molds, workers and
  # services load it; the monitor does not. A library may load it too, with or
  # without the server.
  #
  # Public are its methods, {BackgroundThread}, {Finding}, {ForkCheck}, the errors, the methods of {Audit}, {Libraries}
  # and {SelfCheck}, and what these methods return; all else in ForkSafety is internal.
  module ForkSafety
    # Replaces what a forked child must not share with its siblings, then lets the libraries do the same. Called in each
    # final child of the server, before the user's hooks.
    #
    # @api private
    # @return [nil]
    # @yield before the callbacks of libraries run
    # @raise [CallbackFailed]
    def self.after_fork
      Descriptors.cut_off
      renew_randomness
      yield if block_given?
      Callbacks.settle
    end

    # @api private
    # @return [Integer] clients' connections that the app has hijacked and not closed yet
    def self.connections = Descriptors.private_count

    # Bytes of new entropy for OpenSSL: the strength of its default generator.
    SEED_BYTES = 32
    private_constant :SEED_BYTES

    # Makes sure that siblings do not draw the same numbers: gives Kernel#rand and Random.rand a new seed. SecureRandom
    # reads from the kernel and has no state. OpenSSL notices a fork only by the changed pid. A child may get the pid of
    # the dead process that last used its ancestor's generator, and then OpenSSL notices nothing. So it gets new entropy
    # too. A Random object of the app itself is left alone: its copies draw the same numbers, as with any fork.
    #
    # @api private
    def self.renew_randomness
      Random.srand
      ::OpenSSL::Random.seed(Random.urandom(SEED_BYTES)) if defined?(::OpenSSL::Random)
    end

    # Tells a library that it is in another process than before, with one method call and no system
    # call. It is for what a library repairs on its next use, without a callback.
    #
    #     @check = Pando::ForkSafety::ForkCheck.new
    #     reconnect if @check.renew
    #
    # It counts forks instead of comparing pids, because a child may get the pid of a dead ancestor.
    # Two threads may both see the change. If that matters, the library needs a lock of its own.
    class ForkCheck # rubocop:disable Lint/EmptyClass
      # Written in C (ext/pando/bind_fork_check.c).

      # @!method forked?
      #   @return [Boolean] whether this is another process than the one in which it was made or last renewed

      # @!method renew
      #   Makes this process its own.
      #   @return [Boolean] whether its process was another one before
    end
  end

  class << self
    # @!method pid
    #   The pid of this process, without a system call. It is right in every child that the C library's fork(2)
    #   makes, including those of Process.daemon and of the server's double fork. Written in C (ext/pando/bind_fork.c).
    #   @return [Integer]

    # Says that this process must never be forked again, because it holds something
    # that cannot be made safe, such as a native library with its own threads. A worker keeps serving, but Pando never
    # promotes it. The call cannot be undone, and children inherit it.
    #
    # @param reason [String, nil] for the event; nil: the caller's line
    # @return [nil]
    def no_longer_fork_safe!(reason = nil)
      ForkSafety.give_up(reason || "called at #{caller(1, 1).first}")
    end

    # @return [Boolean] false once {no_longer_fork_safe!} was called, and while there is an obstacle, such as an open
    #   selector of nio4r
    def fork_safe?
      ForkSafety.safe?
    end

    # Excludes IOs from {close_all_ios!}, in this process and its children.
    #
    # @param ios [Array<IO, #to_io>]
    # @return [nil]
    # @raise [TypeError] an argument is not an IO
    def keep_io(*ios)
      ForkSafety::Descriptors.keep(ios)
    end

    # Cuts this process off from the connections and files that it inherited, without telling the other side: a socket
    # then behaves as if its peer had hung up, anything else as /dev/null. Call it from after_mold_fork or
    # after_worker_fork. docs/fork-safety.md says what it leaves as it is, and what it cannot reach.
    #
    # @return [Integer] how many were replaced
    # @raise [SystemCallError] if the process is out of descriptors
    def close_all_ios!
      ForkSafety::Descriptors.replace_all
    end
  end
end
