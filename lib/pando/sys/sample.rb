# frozen_string_literal: true

require "pando/native"

module Pando
  module Sys
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
      def faults_per_job = lately(lately_faults)

      # @return [Float, nil] recent seconds of CPU time per job
      def cpu_per_job = lately(lately_cpu)

      private

      def lately(sum) = (sum.fdiv(lately_jobs) if lately_jobs.positive?)
    end
  end
end
