# frozen_string_literal: true

require "pando/batch"

# The common part of the tests of Pando::Batch.
module BatchSupport
  Batch = Pando::Batch
  PATIENCE = 60
  # Seconds before another attempt, for tests about other things.
  SOON = (0.001..0.002)

  def teardown
    @batch&.stop(within: 0)
  end

  def batch(threads: 4, **options, &work) = @batch = Batch.new(threads: threads, backoff: SOON, **options, &work)

  # Ignores threads that existed before.
  def own_threads(before) = Thread.list - before
end
