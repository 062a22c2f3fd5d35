# frozen_string_literal: true

require "pando/batch"

# What the tests of Pando::Batch have in common.
module BatchSupport
  Batch = Pando::Batch
  PATIENCE = 60
  # Seconds before another attempt, in tests that are about something else.
  SOON = (0.001..0.002)

  def teardown
    @batch&.stop(within: 0)
  end

  def batch(threads: 4, **options, &work) = @batch = Batch.new(threads: threads, backoff: SOON, **options, &work)

  # Threads that were here before are none of ours.
  def own_threads(before) = Thread.list - before
end
