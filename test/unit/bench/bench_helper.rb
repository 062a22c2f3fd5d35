# frozen_string_literal: true

require "test_helper"

$LOAD_PATH.unshift(Support::Checkout.path("bench"))
