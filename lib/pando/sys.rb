# frozen_string_literal: true

require "pando/native"
require "pando/sys/pidfd"

module Pando
  # Thin wrappers for Linux calls, without policy, written in C. On failure they raise the Errno of the call.
  module Sys
    # One process's part of the scoreboard.
    class Row
      # The states of a process, as the monitor sees it (Cluster::Child), by number.
      STATES = %i[ordered adopted ready leaving gone].freeze
    end

    # The state of a process when it was last sampled, from its row of the scoreboard (Row#sample). All values count
    # from its fork, except for `code_bytes`: inherited code is just as warm. CPU time is in seconds.
    #
    #   at                        when (Sys.now)
    #   jobs, cpu, faults         jobs done; CPU time; pages it was given without reading from disk
    #   minor_gcs, major_gcs, gc_time  collections; their seconds together
    #   code_bytes                made by a JIT; 0: there is none
    #   kinds                     of jobs, by verb and subject without parts that have a digit; an estimate up to 266
    #   lately_jobs, lately_cpu,  of the latest span of 32 jobs or more; 0: there was none yet
    #   lately_faults
    class Sample
      # @return [Float, nil] recent page faults per job
      def faults_per_job = (lately_faults.fdiv(lately_jobs) if lately_jobs.positive?)
    end

    # @return [Float] CLOCK_MONOTONIC in seconds: the only clock that deadlines use
    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # Detaches a descriptor from its IO object and leaves it open. An IO object left behind would later be taken for the
    # owner of whatever gets the same number.
    #
    # @param io [IO] is closed afterwards
    # @return [Integer] the descriptor
    def self.disown(io)
      number = io.fileno
      io.autoclose = false
      io.close
      number
    end

    # For a descriptor that another process has sent.
    #
    # @param number [Integer] the descriptor, which is closed if it is no socket
    # @return [Socket, nil] that owns it; nil: it was no socket
    def self.take_socket(number)
      Socket.for_fd(number)
    rescue SystemCallError
      close_fd(number)
    end

    # Lends a descriptor that has another owner to the block, as an IO object that is not left behind.
    #
    # @param number [Integer] the descriptor
    # @param kind [Class] IO or a subclass
    # @yieldparam io [IO]
    # @return [Object] the block's return value
    # @raise [SystemCallError] the descriptor is not open
    def self.borrow(number, kind = IO)
      io = kind.for_fd(number)
      io.autoclose = false
      yield io
    ensure
      io&.close
    end
  end
end
