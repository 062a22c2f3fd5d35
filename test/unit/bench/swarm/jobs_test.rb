# frozen_string_literal: true

require_relative "../bench_helper"
require "support/swarm/jobs"

# Everybody gets the same jobs.
class SwarmJobsTest < Minitest::Test
  def test_the_same_seed_gives_the_same_jobs
    one, same, other = [1, 1, 2].map { |seed| jobs(seed).map { |job| job.values_at("wrapped", "place", "jid") } }

    assert_equal one, same
    refute_equal one, other
  end

  def test_a_job_is_of_a_class_of_the_app_and_says_which_by_its_place
    job = jobs(1).first

    assert_equal Bench::Swarm::Jobs::CLASSES[job["place"]], job["wrapped"]
    assert_equal job["wrapped"], job["args"].first["job_class"]
    assert_includes 1..60, job["args"].first["arguments"].first
  end

  def test_a_job_can_be_looked_up_by_its_number
    jobs = Bench::Swarm::Jobs.new(3).take(30)
    table = Bench::Swarm::Jobs::Table.new(3, 20)

    assert_equal(jobs.first(20), Array.new(20) { |number| table.at(number) })
    assert_equal jobs[1].name, table.at(21).name # and so on, for ever
  end

  private

  def jobs(seed) = Bench::Swarm::Jobs.new(seed).take(20).map { |job| JSON.parse(job.to_sidekiq) }
end
