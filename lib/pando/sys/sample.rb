# frozen_string_literal: true

require "pando/native"

module Pando
  module Sys
    # What a process had become when it was last sampled, in its row of the scoreboard (Row#sample): all since it was
    # forked, but for `code_bytes`, which are as warm if they were inherited. CPU in seconds.
    #
    #   at                        when (Sys.now)
    #   jobs, cpu, faults         done; CPU time; pages it was given without a disk being read
    #   minor_gcs, major_gcs
    #   code_bytes                made by a JIT; 0: there is none
    #   kinds                     of jobs, an estimate up to 266: by verb and subject, but for its parts with a digit
    #   lately_jobs, lately_cpu,  of the last spell of 32 jobs or more; 0: there was none yet
    #   lately_faults
    class Sample
      # @return [Float, nil] page faults for each job, lately
      def faults_per_job = lately(lately_faults)

      # @return [Float, nil] seconds of CPU for each job, lately
      def cpu_per_job = lately(lately_cpu)

      private

      def lately(sum) = (sum.fdiv(lately_jobs) if lately_jobs.positive?)
    end
  end
end
