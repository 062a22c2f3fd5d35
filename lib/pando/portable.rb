# frozen_string_literal: true

require "pando/platform"

module Pando
  # @return [Integer] the pid of this process
  def self.pid = Process.pid

  # The C extension's functions as far as plain Ruby can provide them: enough for pando/fork_safety, pando/batch and
  # applications that call them. All others raise NotImplementedError.
  #
  # @api private
  module Sys
    @forks = 0

    # Counts the forks between this process and the first one.
    #
    # @api private
    module ForkCount
      def _fork = super.tap { |pid| Sys.forked if pid.zero? }
      def daemon(*) = super.tap { Sys.forked }

      Process.singleton_class.prepend(self)
    end

    class << self
      attr_reader :forks

      def forked = @forks += 1

      # Every fork is an ordinary one here.
      def fork_plainly = yield

      # @return [IO] the same IO: separate descriptors for reading and writing cannot be detected here
      def write_half(io) = io

      def reserved_fd?(_number) = false

      # Replaces the file of a descriptor.
      def replace_fd(number, other)
        IO.for_fd(number, autoclose: false).reopen(other)
        nil
      end

      def pidfd_open(_pid) = raise(Errno::ENOSYS, "pidfd_open(2) is Linux's, and this is #{Platform.name}")

      # Called by the self-check of a forked process.
      %i[allocator loader stdio clock thread].each { |name| define_method(:"exercise_#{name}") { nil } }
      def exercise_resolver(*) = nil

      def method_missing(name, *)
        raise NotImplementedError, "Pando::Sys.#{name} needs Linux, and this is #{Platform.name}"
      end

      def respond_to_missing?(*) = false
    end
  end

  module ForkSafety
    # The Ruby version of ext/pando/bind_fork_check.c; documented in pando/fork_safety.
    class ForkCheck
      def initialize
        @forks = Sys.forks
      end

      def forked? = @forks != Sys.forks

      def renew
        before = @forks
        @forks = Sys.forks
        before != @forks
      end
    end
  end
end
