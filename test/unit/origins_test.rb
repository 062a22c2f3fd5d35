# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "pando/native"
require "support/c_program"

# Which line of an application an object was made for.
class OriginsTest < Minitest::Test
  Origins = Pando::Origins
  HERE = "#{__dir__}/".freeze

  def teardown = Origins.stop

  def traced(own: [HERE], foreign: [])
    Origins.start(own, foreign)
    yield
  ensure
    Origins.stop
  end

  def test_what_a_library_makes_is_the_callers
    made = traced { JSON.parse('{"a":["b"]}') }

    assert_equal [__FILE__, __LINE__ - 2], Origins.at(Origins.address(made))
    assert_equal [__FILE__, __LINE__ - 3], Origins.at(Origins.address(made["a"].first))
  end

  def test_what_was_there_before_has_no_origin
    before = Object.new
    traced { Object.new }

    assert_nil Origins.at(Origins.address(before))
  end

  def test_what_others_make_has_none
    made = traced(foreign: [HERE]) { Object.new }

    assert_nil Origins.at(Origins.address(made))
  end

  def test_many_objects_keep_their_lines
    made = traced { Array.new(50_000) { Object.new } }

    assert_equal [[__FILE__, __LINE__ - 2]], made.map { |one| Origins.at(Origins.address(one)) }.uniq
  end

  def test_its_table_in_c
    program = Support::CProgram.path("origins", %w[origins.c sys/maps.c sys/pagemap.c sys/pages.c])
    output, status = Open3.capture2e("timeout", "60", program)

    assert_predicate status, :success?, output
  end

  def test_it_is_started_once_and_wants_texts
    Origins.start([HERE], [])

    assert_raises(ArgumentError) { Origins.start([HERE], []) }
    Origins.stop
    assert_raises(TypeError) { Origins.start([1], []) }
    assert_raises(TypeError) { Origins.start("no list", []) }
    Origins.start([HERE], [])
  end
end
