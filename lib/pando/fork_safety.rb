# frozen_string_literal: true

require "pando/fork_safety/status"
require "pando/fork_safety/descriptors"
require "pando/fork_safety/randomness"
require "pando/fork_safety/sections"
require "pando/fork_safety/self_check"
require "pando/fork_safety/fork_check"
require "pando/fork_safety/registration"
require "pando/fork_safety/audit"

module Pando
  # What makes a process fit to be forked, and its child fit to live. Loaded in
  # molds, workers and services; the monitor has no use for it. A library may
  # load it too, with or without the server.
  module ForkSafety
    # Puts right what every forked child must not share with its siblings, then
    # lets the libraries do the same. Called in each final child of the server,
    # before the user's hooks.
    #
    # @api private
    # @return [nil]
    # @yield what comes before the callbacks of libraries
    # @raise [CallbackFailed]
    def self.after_fork
      Descriptors.cut_off
      Randomness.renew
      yield if block_given?
      Callbacks.settle
    end

    # Marks an IO that no forked child may hold open: a client's connection ends
    # when its own process closes it. Children are cut off from it before the user's hooks.
    #
    # @api private
    # @param io [IO]
    # @return [nil]
    def self.keep_from_children(io)
      Descriptors.keep_from_children(io)
    end

    # @api private
    # @return [Integer] clients' connections that the application has taken over (hijacked) and not closed yet
    def self.connections = Descriptors.private_count
  end

  class << self
    # @!method pid
    #   The pid of this process, without a system call: right in the child of each fork(2) of the C library,
    #   Process.daemon's and the server's double one too. Written in C (ext/pando/bind_fork.c).
    #   @return [Integer]

    # Says that this process must never be forked again, since it holds what
    # cannot be made safe (a native library with threads of its own, say). A
    # worker serves on but is never promoted. It cannot be taken back, and a
    # child inherits it.
    #
    # @param reason [String, nil] for the event; the caller's line without one
    # @return [nil]
    def no_longer_fork_safe!(reason = nil)
      ForkSafety.give_up(reason || "called at #{caller(1, 1).first}")
    end

    # @return [Boolean] false once {no_longer_fork_safe!} was called
    def fork_safe?
      ForkSafety.safe?
    end

    # Excepts IOs from {close_all_ios!}, in this process and its children.
    #
    # @param ios [Array<IO, #to_io>]
    # @return [nil]
    # @raise [TypeError] for what is no IO
    def keep_io(*ios)
      ForkSafety::Descriptors.keep(ios)
    end

    # Cuts this process off from the connections and files it inherited, without
    # a word to the other side: each IO keeps its number, but what is beneath is
    # replaced. A socket then looks hung up by its peer (end of file, EPIPE), so
    # that clients connect anew; anything else reads and writes as /dev/null does.
    # What was buffered and not yet written is dropped.
    #
    # Spared: stdin, stdout, stderr, what {keep_io} was told, Pando's own, and
    # regular files open for appending (logs), which are safe to share.
    #
    # Call it from after_mold_fork or after_worker_fork. It reaches what Ruby has
    # an IO object for, and so no descriptor that a C library keeps to itself.
    #
    # @return [Integer] how many were replaced
    # @raise [SystemCallError] if the process is out of descriptors
    def close_all_ios!
      ForkSafety::Descriptors.replace_all
    end
  end
end
