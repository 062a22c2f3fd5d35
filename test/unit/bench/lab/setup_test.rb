# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/options"

# What the name of a run's file says of its settings.
class LabSetupTest < Minitest::Test
  RUBY = RUBY_VERSION

  def test_by_default_a_name_is_as_it_always_was
    assert_equal ["rails-pando-auto-default-yjit-ruby#{RUBY}-10000-1"], ids("--servers", "pando-auto")
    assert_equal ["rails-pando-auto@new-default-yjit-ruby#{RUBY}-10000-1"],
                 ids("--servers", "pando-auto", "--tag", "new")
  end

  def test_each_setting_that_is_not_as_by_default_makes_another_name
    all = [[], %w[--workers 8], %w[--clients 8], %w[--seed 8], ["--setting", "threads 2"], %w[--pando-root /other],
           %w[--workers 8 --clients 8]].map { |arguments| ids("--servers", "pando-auto", *arguments) }

    assert_equal 7, all.uniq.size
  end

  def test_pandos_settings_do_not_concern_the_others
    arguments = ["--setting", "threads 2", "--pando-root", "/other", "--tag", "new", "--time-scale", "60"]

    assert_equal ids("--servers", "puma"), ids("--servers", "puma", *arguments)
    puma, = Bench::Lab::Options.new(["--servers", "puma", *arguments]).variants
    assert_equal [nil, 1, nil], puma.record.values_at(:tag, :time_scale, :checkout)
  end

  def test_the_size_of_an_app_concerns_that_app
    assert_equal ids("--app", "roda"), ids("--app", "roda", "--methods", "9")
    refute_equal ids("--app", "constants"), ids("--app", "constants", "--methods", "9")
  end

  def test_a_label_tells_two_pandos_apart
    label = lambda do |*arguments|
      Bench::Lab::Options.new(["--servers", "pando-auto", *arguments]).variants.first.label
    end

    assert_equal "Pando, auto, threads 2, other", label["--setting", "threads 2", "--pando-root", "/some/other"]
    assert_equal "Pando, auto (new)", label["--setting", "threads 2", "--tag", "new"]
  end

  private

  def ids(*arguments) = Bench::Lab::Options.new(arguments).variants.map(&:id)
end
