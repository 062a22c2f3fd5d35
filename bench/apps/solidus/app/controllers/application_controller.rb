# frozen_string_literal: true

class ApplicationController < ActionController::Base
  helper_method :spree_current_user

  # The key to the API is all that there is to log in with.
  def spree_current_user
    @spree_current_user ||= params[:token] && Spree.user_class.find_by(spree_api_key: params[:token].to_s)
  end
end
